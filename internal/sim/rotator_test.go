package sim_test

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/serialport"
	"gsd-mcp/internal/sim"
)

// number hides positions and settings, which depend on when they are asked
// for: what is compared is the form of an answer.
var number = regexp.MustCompile(`-?[0-9]+(\.[0-9]+)?`)

// Real firmware, run in an AVR simulator, is the measure of ours: the same
// requests must bring answers of the same form.
func TestSimulatorsAnswerAsTheFirmwareDid(t *testing.T) {
	for _, tt := range []struct {
		protocol, file string
		leaveOut       map[string]string // requests that ours does not know, with the reason
	}{
		{"satnogs", "satnogs_v2.2_simavr", map[string]string{
			"IP1\n": "no end switches", "IP5\n": "no load", "CR 1\n": "no settings", "CR 7\n": "no settings",
		}},
		{"k3ng", "k3ng_gs232b_simavr", map[string]string{
			"C2\n": "CR and LF are not told apart", "\r": "follows the one before", "X1\r": "speed is not reported", "X4\r": "speed is not reported",
			"P36\r": "no calibration", "P45\r": "no calibration", "Z\r": "no calibration", "R\r": "answers with one line end too many",
		}},
		{"gs232a", "k3ng_gs232a_simavr", map[string]string{
			"S\r": "K3NG ends in CR LF where Yaesu ends in CR", "W100 050\r": "the same", "M100\r": "the same",
		}},
	} {
		t.Run(tt.file, func(t *testing.T) {
			f, err := os.Open(filepath.Join("../../testdata/hamlib/rotator", tt.file+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			compared := 0
			synctest.Test(t, func(t *testing.T) {
				m := sim.NewMount(clock.System(), sim.DefaultMount())
				ctl, err := sim.NewController(tt.protocol, m)
				if err != nil {
					t.Fatal(err)
				}
				link, device := sim.Wire()
				ended := make(chan error, 1)
				go func() { ended <- ctl.Run(context.Background(), device) }()
				defer func() { link.Unplug(); <-ended }()
				booting := true
				for sc := bufio.NewScanner(f); sc.Scan(); {
					var c struct {
						Section string `json:"section"`
						Tx      string `json:"tx_hex"`
						Rx      string `json:"rx_hex"`
					}
					if err := json.Unmarshal(sc.Bytes(), &c); err != nil {
						t.Fatal(err)
					}
					if c.Section != "" {
						booting = len(c.Section) > 4 && c.Section[:4] == "boot" && tt.protocol == "satnogs"
						continue
					}
					tx, _ := hex.DecodeString(c.Tx)
					rx, _ := hex.DecodeString(c.Rx)
					if _, ok := tt.leaveOut[string(tx)]; ok || booting || len(tx) == 0 || len(tx) > 64 {
						continue
					}
					if err := link.Write(t.Context(), tx); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					var got []byte
					buf := make([]byte, 256)
					ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
					for {
						n, err := link.Read(ctx, buf)
						if err != nil {
							break
						}
						got = append(got, buf[:n]...)
					}
					cancel()
					compared++
					if a, b := number.ReplaceAllString(string(got), "#"), number.ReplaceAllString(string(rx), "#"); a != b {
						t.Errorf("%q answered by ours %q, by the firmware %q", tx, got, rx)
					}
				}
			})
			if compared < 4 {
				t.Errorf("%d requests compared", compared)
			}
			t.Logf("%d requests compared", compared)
		})
	}
}

func TestMemLinkEndsWithCtxAndFailsAfterAnUnplug(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, device := sim.Wire()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := link.Read(ctx, make([]byte, 1))
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("read = %v after %v, want both timeouts after 1 s", err, time.Since(start))
		}
		canceled, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		if _, err := link.Read(canceled, make([]byte, 1)); !errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read = %v, want context.Canceled", err)
		}
		device.Write([]byte("stale"))
		link.Discard()
		device.Write([]byte("fresh"))
		buf := make([]byte, 16)
		if n, err := link.Read(t.Context(), buf); err != nil || string(buf[:n]) != "fresh" {
			t.Errorf("read %q, %v", buf[:n], err)
		}
		link.Stall(true)
		full, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		if err := link.Write(full, make([]byte, 5000)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write to a stalled device = %v, want a timeout", err)
		}
		time.AfterFunc(time.Second, link.Unplug)
		if _, err := link.Read(t.Context(), buf); !errors.Is(err, serialport.ErrUnplugged) {
			t.Errorf("read over an unplug = %v, want ErrUnplugged", err)
		}
		if err := link.Write(t.Context(), []byte("S")); !errors.Is(err, serialport.ErrUnplugged) {
			t.Errorf("write after an unplug = %v, want ErrUnplugged", err)
		}
	})
}

func TestServeComesBackUnderAnotherNameAfterAnUnplug(t *testing.T) {
	t.Parallel()
	link := filepath.Join(t.TempDir(), "rotator")
	ctl := sim.NewEasycomm2(sim.NewMount(clock.System(), sim.DefaultMount()))
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- sim.Serve(ctx, ctl, link, true, func() { close(ready) }) }()
	<-ready
	first, err := os.Readlink(link)
	if err != nil {
		t.Fatal(err)
	}
	if !asked(t, link) {
		t.Error("no answer before the unplug")
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no answer under another name")
		}
		if now, err := os.Readlink(link); err == nil && now != first && asked(t, link) {
			break
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(link); !os.IsNotExist(err) {
		t.Errorf("the link is still there: %v", err)
	}
}

// asked opens a port, asks for the position and reports whether something came
// back.
func asked(t *testing.T, path string) bool {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), time.Second)
	defer done()
	p, err := serialport.Open(ctx, serialport.Config{Path: path, Baud: 9600})
	if err != nil {
		return false
	}
	defer p.Close()
	if p.Write(ctx, []byte("AZ EL \n")) != nil {
		return false
	}
	n, err := p.Read(ctx, make([]byte, 64))
	return err == nil && n > 0
}
