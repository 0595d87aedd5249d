package rotator_test

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/peers"
	"gsd-mcp/internal/rotator"
	"gsd-mcp/internal/serialport"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/unit"
)

// The tests at real ports wait for devices and hardly compute, so more of them
// than the machine has processors may run at a time.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// served is a simulated controller on a real pseudo-terminal, at 20 times the
// speed of time.
func served(t *testing.T, protocol string) (ctl *sim.Controller, link string) {
	t.Helper()
	clk, err := clock.Simulated(time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC), time.Now(), 20)
	if err != nil {
		t.Fatal(err)
	}
	ctl, err = sim.NewController(protocol, sim.NewMount(clk, sim.DefaultMount()))
	if err != nil {
		t.Fatal(err)
	}
	link = filepath.Join(t.TempDir(), "rotator")
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- sim.Serve(ctx, ctl, link, false, func() { close(ready) }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("simulator: %v", err)
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
	return ctl, link
}

// eventually waits for a mount that moves in real time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func isAt(m *sim.Mount, azOnly bool, az, el, tolerance float64) func() bool {
	return func() bool {
		at := m.Truth()
		return !m.Moving() && math.Abs(at.AzDeg-az) <= tolerance && (azOnly || math.Abs(at.ElDeg-el) <= tolerance)
	}
}

// A hamlibModel is what Debian's rotctl is to do with a simulator.
type hamlibModel struct {
	model    int
	protocol string
	baud     int
	can      string  // p read, e elevation too, s stop, k park
	step     float64 // degrees
	flat     bool    // Hamlib takes no elevation but 0
}

// hamlibModels are all the models that have golden captures and a serial line.
func hamlibModels() []hamlibModel {
	var all []hamlibModel
	for _, d := range rotator.Drivers() {
		if d.Hamlib == 0 || d.Baud == 0 {
			continue
		}
		m := hamlibModel{model: d.Hamlib, protocol: d.Name, baud: d.Baud, can: "s", step: d.Caps.ResolutionDeg, flat: d.Caps.AzimuthOnly}
		if d.Caps.Feedback {
			m.can += "p"
			if !d.Caps.AzimuthOnly && d.Hamlib != 1003 { // 1003 does not ask for elevation
				m.can += "e"
			}
		}
		if d.Caps.Park {
			m.can += "k"
		}
		all = append(all, m)
	}
	return append(all,
		hamlibModel{402, "rotorez", 4800, "ps", 1, true},
		hamlibModel{602, "gs232a", 9600, "pes", 1, false},
		hamlibModel{604, "gs232a", 9600, "", 1, false}, // neither reads nor stops
		hamlibModel{605, "gs232a", 9600, "pes", 1, false},
		hamlibModel{606, "gs232a", 9600, "pes", 1, false},
		hamlibModel{607, "gs232a", 9600, "pes", 1, false},
		hamlibModel{608, "gs232a", 9600, "pes", 1, false},
		hamlibModel{609, "gs232a", 9600, "ps", 1, true},
		hamlibModel{611, "gs232b", 9600, "ps", 1, true},
		hamlibModel{1002, "rc2800early", 9600, "ps", 1, true},
	)
}

// Debian's Hamlib is the peer: it must read, move and stop every simulator
// whose protocol it speaks.
func TestRotctlReadsMovesAndStopsTheSimulatedMount(t *testing.T) {
	rotctl := peers.Need(t, "rotctl", "libhamlib-utils")
	for _, h := range hamlibModels() {
		t.Run(fmt.Sprintf("%d on %s", h.model, h.protocol), func(t *testing.T) {
			t.Parallel()
			ctl, link := served(t, h.protocol)
			m := ctl.Mount()
			do := func(args ...string) string {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				args = append([]string{"-m", fmt.Sprint(h.model), "-r", link, "-s", fmt.Sprint(h.baud)}, args...)
				out, err := exec.CommandContext(ctx, rotctl, args...).CombinedOutput()
				if err != nil || strings.Contains(string(out), "error = ") {
					t.Fatalf("rotctl %v: %v\n%s", args, err, out)
				}
				return string(out)
			}
			el40, el10 := "40", "10"
			if h.flat {
				el40, el10 = "0", "0"
			}
			do("P", "100", el40)
			eventually(t, "set by rotctl to 100/40", isAt(m, h.flat, 100, 40, h.step))
			if strings.Contains(h.can, "p") {
				var az, el float64
				n, _ := fmt.Sscan(do("p"), &az, &el)
				if n < 1 || math.Abs(az-100) > h.step || strings.Contains(h.can, "e") && math.Abs(el-40) > h.step {
					t.Errorf("rotctl read %v/%v, want 100/40", az, el)
				}
			}
			do("P", "350", el10)
			eventually(t, "under way", func() bool { return m.Truth().AzDeg > 110 })
			if !strings.Contains(h.can, "s") {
				return
			}
			do("S")
			eventually(t, "stopped by rotctl", func() bool { return !m.Moving() })
			if at := m.Truth(); at.AzDeg > 349 {
				t.Errorf("the stop did nothing: %+v", at)
			}
			if strings.Contains(h.can, "k") {
				do("K")
				eventually(t, "parked by rotctl", isAt(m, h.flat, 0, 0, 0.1))
			}
		})
	}
}

func TestOurDriverMovesTheSameMountThroughARealPort(t *testing.T) {
	for _, d := range rotator.Drivers() {
		if d.Baud == 0 {
			continue
		}
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			ctl, link := served(t, d.Name)
			m := ctl.Mount()
			port, err := serialport.Open(t.Context(), serialport.Config{Path: link, Baud: d.Baud, Stop2: d.Stop2})
			if err != nil {
				t.Fatal(err)
			}
			defer port.Close()
			r := d.New(port)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if err := r.Halt(ctx); err != nil {
				t.Fatal(err)
			}
			if err := r.Point(ctx, unit.AzEl{AzDeg: 100, ElDeg: 40}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "at 100/40", isAt(m, d.Caps.AzimuthOnly, 100, 40, d.Caps.ResolutionDeg))
			if at, err := r.Position(ctx); d.Caps.Feedback && (err != nil || math.Abs(at.AzDeg-100) > d.Caps.ResolutionDeg) {
				t.Errorf("Position = %v, %v", at, err)
			}
			if err := r.Point(ctx, unit.AzEl{AzDeg: 350, ElDeg: 10}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "under way", func() bool { return m.Truth().AzDeg > 110 })

			// A stop from the middle of an exchange that nobody answers.
			ctl.SetFault(sim.RotatorMute)
			asking, stopAsking := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { _, err := r.Position(asking); ended <- err }()
			time.Sleep(20 * time.Millisecond)
			start := time.Now()
			stopAsking()
			<-ended
			if err := r.Halt(ctx); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > 50*time.Millisecond && d.Caps.MinInterval < 200*time.Millisecond {
				t.Errorf("the stop was written %v after the call, want 50 ms", took)
			}
			eventually(t, "stopped", func() bool { return !m.Moving() })
			if at := m.Truth(); at.AzDeg > 349 {
				t.Errorf("the stop did nothing: %+v", at)
			}
			ctl.SetFault(sim.RotatorHealthy)
			if at, err := r.Position(ctx); d.Caps.Feedback && (err != nil || math.Abs(at.AzDeg-m.Truth().AzDeg) > d.Caps.ResolutionDeg+0.01) {
				t.Errorf("after the trouble: %v, %v; truth %+v", at, err, m.Truth())
			}
			if s := port.Stats(); d.Caps.Feedback && (s.Frames == 0 || s.BytesOut == 0) {
				t.Errorf("nothing counted: %+v", s)
			}
		})
	}
}

func TestTheDriverGoesOnAfterAnUnplug(t *testing.T) {
	clk := clock.System()
	link := filepath.Join(t.TempDir(), "rotator")
	d := lookup(t, "easycomm2")
	ctx := t.Context()
	for i := range 2 {
		ctl, err := sim.NewController("easycomm2", sim.NewMount(clk, sim.DefaultMount()))
		if err != nil {
			t.Fatal(err)
		}
		running, unplug := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- sim.Serve(running, ctl, link, false, nil) }()
		var r rotator.Rotator
		eventually(t, fmt.Sprintf("position read, life %d of the port", i+1), func() bool {
			port, err := serialport.Open(ctx, serialport.Config{Path: link, Baud: d.Baud})
			if err != nil {
				return false
			}
			t.Cleanup(func() { port.Close() })
			r = d.New(port)
			_, err = r.Position(ctx)
			return err == nil
		})
		unplug()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if err := r.Halt(ctx); err == nil {
			t.Error("a stop into nothing reports success")
		}
	}
}
