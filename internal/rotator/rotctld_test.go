package rotator_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/peers"
	"gsd-mcp/internal/rotator"
	"gsd-mcp/internal/serialport"
	"gsd-mcp/internal/unit"
)

// startRotctld runs Hamlib's server and returns a port to it.
func startRotctld(t *testing.T, args ...string) *serialport.Port {
	t.Helper()
	rotctld := peers.Need(t, "rotctld", "libhamlib-utils")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	cmd := exec.Command(rotctld, append(args, "-T", "127.0.0.1", "-t", fmt.Sprint(port))...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	var p *serialport.Port
	eventually(t, "rotctld listens", func() bool {
		p, err = serialport.Open(t.Context(), serialport.Config{Path: fmt.Sprintf("tcp://127.0.0.1:%d", port)})
		return err == nil
	})
	t.Cleanup(func() { p.Close() })
	return p
}

func TestOurClientMovesHamlibsDummyAndObeysItsRange(t *testing.T) {
	r := lookup(t, "rotctld").New(startRotctld(t, "-m", "1"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := r.Halt(ctx); err != nil {
		t.Fatal(err)
	}
	if err := r.Point(ctx, unit.AzEl{AzDeg: 1.25, ElDeg: 2.5}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the dummy has turned to 1.25/2.5", func() bool {
		at, err := r.Position(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return math.Abs(at.AzDeg-1.25) < 0.02 && math.Abs(at.ElDeg-2.5) < 0.02
	})
	// The dummy's elevation ends at 90.
	err := r.Point(ctx, unit.AzEl{AzDeg: 10, ElDeg: 100})
	if !errors.Is(err, rotator.ErrRange) || !strings.Contains(err.Error(), "90") {
		t.Errorf("elevation 100 = %v, want ErrRange with the server's limit", err)
	}
	if err := r.(rotator.Parker).Park(ctx); err != nil {
		t.Errorf("park: %v", err)
	}
	if err := r.Halt(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// Our client, Hamlib's server, Hamlib's driver and our simulated mount in one
// chain.
func TestOurClientMovesOurMountThroughHamlib(t *testing.T) {
	ctl, link := served(t, "easycomm2")
	r := lookup(t, "rotctld").New(startRotctld(t, "-m", "202", "-r", link, "-s", "9600"))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := r.Point(ctx, unit.AzEl{AzDeg: 100, ElDeg: 40}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "at 100/40", isAt(ctl.Mount(), false, 100, 40, 0.05))
	if at, err := r.Position(ctx); err != nil || math.Abs(at.AzDeg-100) > 0.1 {
		t.Errorf("Position = %v, %v", at, err)
	}
}

func TestRotctldAnswersAreBelievedOnlyForTheirOwnCommand(t *testing.T) {
	d := lookup(t, "rotctld")
	state := "dump_state:\nMinimum Azimuth: 0.0\nMaximum Azimuth: 450.0\nMinimum Elevation: 0.0\nMaximum Elevation: 90.0\ndone\nRPRT 0\n"
	for _, tt := range []struct {
		name, dump, set string
		want            error
	}{
		{"accepted", state, "set_pos: 10.00 20.00\nRPRT 0\n", nil},
		{"out of range for it", state, "set_pos: 10.00 20.00\nRPRT -21\n", rotator.ErrRejected},
		{"it has lost its device", state, "set_pos: 10.00 20.00\nRPRT -6\n", rotator.ErrNoReply},
		{"another set's answer", state, "set_pos: 10.00 21.00\nRPRT 0\n", rotator.ErrBadReply},
		{"the plain form", state, "RPRT 0\n", rotator.ErrBadReply},
		{"no range", "dump_state:\nrotctld Protocol Ver: 0\ndone\nRPRT 0\n", "", rotator.ErrBadReply},
		{"a range that is no number", strings.Replace(state, "450.0", "nan", 1), "", rotator.ErrBadReply},
		{"HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n", "", rotator.ErrBadReply},
		{"silence", "", "", rotator.ErrNoReply},
	} {
		var err error
		sent := on(t, d, func(request string) string {
			if strings.Contains(request, "dump_state") {
				return tt.dump
			}
			return tt.set
		}, func(ctx context.Context, r rotator.Rotator) { err = r.Point(ctx, unit.AzEl{AzDeg: 10, ElDeg: 20}) })
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if tt.set == "" && strings.Contains(sent, "P 10") {
			t.Errorf("%s: moved without knowing the range: %q", tt.name, sent)
		}
	}
}
