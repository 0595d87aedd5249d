package radio_test

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/peers"
	"gsd-mcp/internal/radio"
	"gsd-mcp/internal/serialport"
	"gsd-mcp/internal/sim"
)

// onPTY runs a simulated radio on a pseudo-terminal until the test ends.
func onPTY(t *testing.T, dev sim.Device) (name string) {
	t.Helper()
	pty, err := sim.OpenPTY()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = dev.Run(ctx, pty.Device)
	}()
	t.Cleanup(func() { cancel(); <-stopped; pty.Close() })
	return pty.Name
}

func TestIC9700OverARealPort(t *testing.T) {
	dev := sim.NewIC9700(clock.System())
	name := onPTY(t, dev)
	m, err := radio.Lookup("icom-ic9700")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	port, err := serialport.Open(ctx, serialport.Config{Path: name, Baud: m.Baud})
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	r := m.New(port)
	down, up := radio.Tuning{FrequencyHz: 437_800_000, Mode: radio.FM}, radio.Tuning{FrequencyHz: 145_990_000, Mode: radio.FM}
	if err := r.Prepare(ctx, down, up); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	const steps = 20
	for i := range int64(steps) {
		if hz, err := r.Tune(ctx, radio.Downlink, down.FrequencyHz+i*97); err != nil || hz != down.FrequencyHz+i*97 {
			t.Fatalf("step %d: Tune = %d, %v", i, hz, err)
		}
	}
	if each := time.Since(start) / steps; each > 250*time.Millisecond {
		t.Errorf("a Doppler step takes %v, which is less than four a second", each)
	}
	st, err := r.Status(ctx)
	want := radio.Status{Downlink: radio.Tuning{FrequencyHz: down.FrequencyHz + 19*97, Mode: radio.FM}, Uplink: up, Satellite: true}
	if err != nil || st != want {
		t.Errorf("Status = %+v, %v; want %+v", st, err, want)
	}
	if err := r.Halt(ctx); err != nil {
		t.Errorf("Halt = %v", err)
	}
	if tr := dev.Truth(); tr.KeyRequests != 0 || tr.Transmitting {
		t.Errorf("the radio was keyed: %+v", tr)
	}
}

// rigctl runs Hamlib's rigctl with commands and returns what it prints.
func rigctl(t *testing.T, model, port string, commands ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	args := append([]string{"-m", model, "-r", port}, commands...)
	out, err := exec.CommandContext(ctx, peers.Need(t, "rigctl", "libhamlib-utils"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("rigctl %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestHamlibDrivesTheSimulatedIC9700(t *testing.T) {
	for _, echo := range []bool{true, false} {
		t.Run(map[bool]string{true: "echo", false: "no echo"}[echo], func(t *testing.T) {
			peers.Need(t, "rigctl", "libhamlib-utils")
			dev := sim.NewIC9700(clock.System())
			dev.SetEcho(echo)
			port := onPTY(t, dev)
			const model = "3081"
			if got := rigctl(t, model, port, "f"); got != "145800000" {
				t.Errorf("f = %q", got)
			}
			rigctl(t, model, port, "F", "437550000", "M", "USB", "0")
			if got := dev.Truth().Main; got != (sim.RadioSide{FrequencyHz: 437_550_000, Mode: "USB"}) {
				t.Errorf("after F and M the radio is at %+v", got)
			}
			if got := rigctl(t, model, port, "f", "m"); !strings.HasPrefix(got, "437550000\nUSB\n") {
				t.Errorf("f m = %q", got)
			}
			rigctl(t, model, port, "S", "1", "VFOB", "I", "435103000")
			if tr := dev.Truth(); !tr.Split || tr.TransmitHz != 435_103_000 {
				t.Errorf("after S and I the radio is at %+v", tr)
			}
			rigctl(t, model, port, "S", "0", "VFOA", "U", "SATMODE", "1")
			if !dev.Truth().Satellite {
				t.Error("satellite mode is off after U SATMODE 1")
			}
			rigctl(t, model, port, "T", "1")
			if !dev.Truth().Transmitting {
				t.Error("T 1 does not key the simulated radio")
			}
			rigctl(t, model, port, "T", "0")
			if dev.Truth().Transmitting {
				t.Error("T 0 does not unkey the simulated radio")
			}
		})
	}
}

func TestHamlibDrivesEverySimulatedRadio(t *testing.T) {
	peers.Need(t, "rigctl", "libhamlib-utils")
	tests := []struct {
		model, hamlib string
		set           []string // and what is true afterwards:
		main          sim.RadioSide
		reads         string // what f m prints after that, "" where it cannot be read
		ptt           bool
	}{
		{"ic-9100", "3068", []string{"F", "437550000", "M", "USB", "0"}, sim.RadioSide{FrequencyHz: 437_550_000, Mode: "USB"}, "437550000\nUSB", true},
		{"ic-910h", "3044", []string{"F", "437550000", "M", "USB", "0"}, sim.RadioSide{FrequencyHz: 437_550_000, Mode: "USB"}, "437550000\nUSB", true},
		// Hamlib sends an IC-821H four bytes of frequency whatever it answers with.
		{"ic-821h", "3034", []string{"M", "USB", "0"}, sim.RadioSide{FrequencyHz: 145_800_000, Mode: "USB"}, "145800000\nUSB", false},
		{"ic-7100", "3070", []string{"F", "437550000", "M", "USB", "0"}, sim.RadioSide{FrequencyHz: 437_550_000, Mode: "USB"}, "437550000\nUSB", true},
		{"ic-705", "3085", []string{"F", "437550000", "M", "USB", "0"}, sim.RadioSide{FrequencyHz: 437_550_000, Mode: "USB"}, "437550000\nUSB", true},
		{"ts-2000", "2014", []string{"F", "437550000", "M", "USB", "0"}, sim.RadioSide{FrequencyHz: 437_550_000, Mode: "USB"}, "437550000\nUSB", true},
		{"ts-790", "2007", []string{"F", "437550000", "M", "USB", "0"}, sim.RadioSide{FrequencyHz: 437_550_000, Mode: "USB"}, "437550000\nUSB", true},
		{"ft-847", "1001", []string{"F", "437550000", "M", "USB", "0"}, sim.RadioSide{FrequencyHz: 437_550_000, Mode: "USB"}, "437550000\nUSB", true},
		{"ft-736r", "1010", []string{"F", "437550000", "M", "USB", "0"}, sim.RadioSide{FrequencyHz: 437_550_000, Mode: "USB"}, "", true},
		{"ft-817", "1020", []string{"F", "437550000", "M", "USB", "0"}, sim.RadioSide{FrequencyHz: 437_550_000, Mode: "USB"}, "437550000", true}, // its mode Hamlib reads from the other VFO
		{"ft-818", "1041", []string{"F", "437550000", "M", "USB", "0"}, sim.RadioSide{FrequencyHz: 437_550_000, Mode: "USB"}, "437550000", true}, // its mode Hamlib reads from the other VFO
		{"ft-857", "1022", []string{"F", "437550000", "M", "USB", "0"}, sim.RadioSide{FrequencyHz: 437_550_000, Mode: "USB"}, "437550000\nUSB", true},
		{"ft-897", "1023", []string{"F", "437550000", "M", "USB", "0"}, sim.RadioSide{FrequencyHz: 437_550_000, Mode: "USB"}, "437550000\nUSB", true},
		{"ft-991a", "1035", []string{"F", "437550000", "M", "USB", "0"}, sim.RadioSide{FrequencyHz: 437_550_000, Mode: "USB"}, "437550000\nUSB", true},
	}
	for _, tt := range tests {
		t.Run(tt.model, func(t *testing.T) {
			t.Parallel()
			dev, err := sim.NewRadio(tt.model, clock.System())
			if err != nil {
				t.Fatal(err)
			}
			port := onPTY(t, dev)
			if !insist(func() { rigctl(t, tt.hamlib, port, tt.set...) }, func() bool { return dev.Truth().Main == tt.main }) {
				t.Errorf("after %v the radio is at %+v, want %+v", tt.set, dev.Truth().Main, tt.main)
			}
			if tt.reads != "" {
				if got := rigctl(t, tt.hamlib, port, "f", "m"); !strings.HasPrefix(got, tt.reads+"\n") {
					t.Errorf("f m = %q, want %q", got, tt.reads)
				}
			}
			if !tt.ptt {
				return
			}
			// Hamlib leaves the radio keyed when it ends: the driver's Halt is what
			// brings it back.
			if !insist(func() { rigctl(t, tt.hamlib, port, "T", "1") }, func() bool { return dev.Truth().Transmitting }) {
				t.Fatal("T 1 does not key the simulated radio")
			}
			m, err := radio.Lookup(tt.model)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			link, err := serialport.Open(ctx, serialport.Config{Path: port, Baud: m.Baud, Stop2: m.Stop2})
			if err != nil {
				t.Fatal(err)
			}
			defer link.Close()
			if err := m.New(link).Halt(ctx); err != nil {
				t.Errorf("Halt = %v", err)
			}
			if !eventually(func() bool { return !dev.Truth().Transmitting }) {
				t.Error("the simulated radio still transmits after Halt")
			}
		})
	}
}

func TestRigctldClientDrivesARadioBehindHamlib(t *testing.T) {
	path := peers.Need(t, "rigctld", "libhamlib-utils")
	dev := sim.NewIC9700(clock.System())
	port := onPTY(t, dev)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().(*net.TCPAddr)
	free.Close()
	cmd := exec.Command(path, "-m", "3081", "-r", port, "-T", "127.0.0.1", "-t", strconv.Itoa(addr.Port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var link *serialport.Port
	if !eventually(func() bool {
		link, err = serialport.Open(ctx, serialport.Config{Path: "tcp://" + addr.String()})
		return err == nil
	}) {
		t.Fatal(err)
	}
	defer link.Close()
	m, err := radio.Lookup("rigctld")
	if err != nil {
		t.Fatal(err)
	}
	r := m.New(link)
	down := radio.Tuning{FrequencyHz: 437_550_000, Mode: radio.USB}
	if err := r.Prepare(ctx, down, radio.Tuning{}); err != nil {
		t.Fatal(err)
	}
	if hz, err := r.Tune(ctx, radio.Downlink, 437_551_234); hz != 437_551_234 || err != nil {
		t.Errorf("Tune = %d, %v", hz, err)
	}
	down.FrequencyHz = 437_551_234
	if st, err := r.Status(ctx); err != nil || st != (radio.Status{Downlink: down}) {
		t.Errorf("Status = %+v, %v", st, err)
	}
	if got, want := dev.Truth().Main, (sim.RadioSide{FrequencyHz: down.FrequencyHz, Mode: "USB"}); got != want {
		t.Errorf("the radio is at %+v, want %+v", got, want)
	}
	if _, err := r.Tune(ctx, radio.Downlink, 2_400_100_000); !errors.Is(err, radio.ErrRefused) {
		t.Errorf("Tune to 2.4 GHz = %v, want a refusal", err)
	}
	dev.SetFault(sim.RadioMicPTT)
	dev.SetFault(sim.RadioHealthy) // keyed, and not by us
	if err := r.Halt(ctx); err != nil || dev.Truth().Transmitting {
		t.Errorf("Halt = %v, transmitting %v", err, dev.Truth().Transmitting)
	}
}

// insist does something until it has had its effect, at most three times:
// Hamlib writes to unacknowledged radios byte by byte, and on a busy machine two
// bytes can be further apart than a radio waits.
func insist(do func(), is func() bool) bool {
	for range 3 {
		if do(); eventually(is) {
			return true
		}
	}
	return false
}

// eventually polls a condition for ten seconds.
func eventually(is func() bool) bool {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if is() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}
