package serialport_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gsd-mcp/internal/serialport"
	"gsd-mcp/internal/sim"
)

func openPTY(t *testing.T) *sim.PTY {
	t.Helper()
	pty, err := sim.OpenPTY()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pty.Close() })
	return pty
}

func openPort(t *testing.T, path string) *serialport.Port {
	t.Helper()
	p, err := serialport.Open(t.Context(), serialport.Config{Path: path, Baud: 9600})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestBytesGoBothWaysUnchanged(t *testing.T) {
	pty := openPTY(t)
	p := openPort(t, pty.Name)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	if err := p.Write(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 256)
	if _, err := io.ReadFull(pty.Device, got); err != nil || !bytes.Equal(got, all) {
		t.Fatalf("the device got % x, %v", got, err)
	}
	go pty.Device.Write(all)
	var back []byte
	buf := make([]byte, 64)
	for len(back) < 256 {
		n, err := p.Read(t.Context(), buf)
		if err != nil {
			t.Fatal(err)
		}
		back = append(back, buf[:n]...)
	}
	if !bytes.Equal(back, all) {
		t.Errorf("read % x", back)
	}
	s := p.Stats()
	if s.BytesIn != 256 || s.BytesOut != 256 || s.RoundTrip50 <= 0 {
		t.Errorf("stats %+v, want 256 bytes each way and a round trip", s)
	}
}

func TestReadEndsAtTheDeadlineAndBothErrorsHold(t *testing.T) {
	p := openPort(t, openPTY(t).Name)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	start := time.Now()
	n, err := p.Read(ctx, make([]byte, 8))
	if n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Read = %d, %v; want 0 and a timeout of both kinds", n, err)
	}
	if d := time.Since(start); d > 500*time.Millisecond {
		t.Errorf("a 20 ms read took %v", d)
	}
	if p.Stats().Timeouts != 1 {
		t.Errorf("stats %+v, want one timeout", p.Stats())
	}
}

// The promise that a stop rests on: cancelling ends the reply that was awaited,
// and the next write reaches the wire, all within 50 ms.
func TestCancelEndsAPendingReadAndTheNextWriteIsOnTheWireIn50ms(t *testing.T) {
	pty := openPTY(t)
	p := openPort(t, pty.Name)
	var worst time.Duration
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		read := make(chan error, 1)
		go func() {
			_, err := p.Read(ctx, make([]byte, 8))
			read <- err
		}()
		time.Sleep(5 * time.Millisecond) // let it wait in the poller
		start := time.Now()
		cancel()
		if err := <-read; !errors.Is(err, context.Canceled) {
			t.Fatalf("Read = %v, want context.Canceled", err)
		}
		if err := p.Write(t.Context(), []byte("SA SE \n")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 7)
		if _, err := io.ReadFull(pty.Device, got); err != nil {
			t.Fatal(err)
		}
		worst = max(worst, time.Since(start))
	}
	if worst > 50*time.Millisecond {
		t.Errorf("the slowest of 20 stops took %v, want at most 50 ms", worst)
	}
	t.Logf("slowest of 20: %v", worst)
}

func TestACancelledReadDoesNotCutTheNextOneShort(t *testing.T) {
	pty := openPTY(t)
	p := openPort(t, pty.Name)
	for i := range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		p.Read(ctx, make([]byte, 1))
		pty.Device.Write([]byte{'x'})
		next, done := context.WithTimeout(t.Context(), 5*time.Second)
		if _, err := p.Read(next, make([]byte, 1)); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		done()
	}
}

func TestStalledWriterEndsWithCtxAndStopGetsThrough(t *testing.T) {
	pty := openPTY(t)
	p := openPort(t, pty.Name)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := p.Write(ctx, bytes.Repeat([]byte("W123 045\r"), 20000)) // nobody reads
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("Write into a full queue = %v, want a timeout", err)
	}
	start := time.Now()
	stop, cancelStop := context.WithTimeout(t.Context(), time.Second)
	defer cancelStop()
	if err := p.Write(stop, []byte("\rS\r")); err != nil {
		t.Fatalf("stop behind a stalled queue: %v", err)
	}
	if d := time.Since(start); d > 50*time.Millisecond {
		t.Errorf("stop took %v to be written, want at most 50 ms", d)
	}
	if p.Stats().Flushes == 0 {
		t.Error("the stalled queue was not thrown away")
	}
	var got []byte
	buf := make([]byte, 65536)
	for !bytes.HasSuffix(got, []byte("\rS\r")) {
		pty.Device.SetReadDeadline(time.Now().Add(2 * time.Second))
		n, err := pty.Device.Read(buf)
		if err != nil {
			t.Fatalf("after %d bytes the device had not seen the stop: %v", len(got), err)
		}
		got = append(got, buf[:n]...)
	}
}

func TestCloseWakesAReaderAndAWriterAndReturns(t *testing.T) {
	pty := openPTY(t)
	for _, op := range []struct {
		name string
		do   func(*serialport.Port) error
	}{
		{"read", func(p *serialport.Port) error { _, err := p.Read(context.Background(), make([]byte, 1)); return err }},
		{"write", func(p *serialport.Port) error { return p.Write(context.Background(), make([]byte, 1<<20)) }},
	} {
		p := openPort(t, pty.Name)
		ended := make(chan error, 1)
		go func() { ended <- op.do(p) }()
		time.Sleep(20 * time.Millisecond)
		start := time.Now()
		if err := p.Close(); err != nil {
			t.Errorf("close during a %s: %v", op.name, err)
		}
		if err := <-ended; !errors.Is(err, os.ErrClosed) || errors.Is(err, serialport.ErrUnplugged) {
			t.Errorf("%s ended by our own Close = %v, want os.ErrClosed and not ErrUnplugged", op.name, err)
		}
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("close during a %s took %v", op.name, d)
		}
		if err := p.Write(t.Context(), []byte("M180\r")); !errors.Is(err, os.ErrClosed) {
			t.Errorf("write after close = %v, want os.ErrClosed", err)
		}
		if err := p.Close(); err != nil {
			t.Errorf("second close: %v", err)
		}
	}
}

func TestUnplugIsToldFromOurOwnClose(t *testing.T) {
	pty := openPTY(t)
	p := openPort(t, pty.Name)
	time.AfterFunc(20*time.Millisecond, func() { pty.Close() })
	if _, err := p.Read(t.Context(), make([]byte, 1)); !errors.Is(err, serialport.ErrUnplugged) {
		t.Errorf("read over an unplug = %v, want ErrUnplugged", err)
	}
	if err := p.Write(t.Context(), []byte("S\r")); !errors.Is(err, serialport.ErrUnplugged) {
		t.Errorf("write after an unplug = %v, want ErrUnplugged", err)
	}
	if err := p.Discard(); !errors.Is(err, serialport.ErrUnplugged) {
		t.Errorf("discard after an unplug = %v, want ErrUnplugged", err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("close after an unplug: %v", err)
	}
}

func TestOpenSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	pty := openPTY(t)
	tests := []struct {
		name  string
		cfg   serialport.Config
		is    error
		wants []string
	}{
		{"missing", serialport.Config{Path: dir + "/usb-FTDI", Baud: 9600}, serialport.ErrMissing, []string{dir + "/usb-FTDI", "check cable", "by-id"}},
		{"a file", serialport.Config{Path: file, Baud: 9600}, nil, []string{file, "not a serial port"}},
		{"a directory", serialport.Config{Path: dir, Baud: 9600}, nil, []string{dir, "not a serial port"}},
		{"a device that is no tty", serialport.Config{Path: "/dev/null", Baud: 9600}, nil, []string{"/dev/null", "not a serial port"}},
		{"no path", serialport.Config{Baud: 9600}, nil, []string{"set port"}},
		{"negative baud", serialport.Config{Path: pty.Name, Baud: -5}, nil, []string{"-5", "9600"}},
		{"odd baud", serialport.Config{Path: pty.Name, Baud: 9601}, nil, []string{"9601"}},
		{"another adapter", serialport.Config{Path: pty.Name, Baud: 9600, Identity: "1a86:7523"}, serialport.ErrIdentity, []string{"1a86:7523"}},
		{"hostile path", serialport.Config{Path: "/dev/\x1b[2Jx\ny", Baud: 9600}, serialport.ErrMissing, []string{"/dev/[2Jx y"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := serialport.Open(t.Context(), tt.cfg)
			if err == nil {
				p.Close()
				t.Fatal("opened")
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %q is not %v", err, tt.is)
			}
			for _, want := range tt.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

func TestSecondOpenIsRefusedUntilTheFirstCloses(t *testing.T) {
	pty := openPTY(t)
	p := openPort(t, pty.Name)
	if _, err := serialport.Open(t.Context(), serialport.Config{Path: pty.Name, Baud: 9600}); !errors.Is(err, serialport.ErrBusy) {
		t.Fatalf("second open = %v, want ErrBusy", err)
	}
	p.Close()
	openPort(t, pty.Name)
}

func TestChildrenDoNotInheritThePort(t *testing.T) {
	pty := openPTY(t)
	openPort(t, pty.Name)
	out, err := exec.Command("ls", "-l", "/proc/self/fd").Output()
	if err != nil {
		t.Skip(err)
	}
	if strings.Contains(string(out), pty.Name+"\n") {
		t.Errorf("a child has the port open:\n%s", out)
	}
}

func TestHangUpFlagFollowsTheConfiguration(t *testing.T) {
	pty := openPTY(t)
	for _, hangUp := range []bool{true, false} {
		p, err := serialport.Open(t.Context(), serialport.Config{Path: pty.Name, Baud: 9600, HangUp: hangUp})
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(pty.Name, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		tio, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
		if err != nil {
			t.Fatal(err)
		}
		if got := tio.Cflag&unix.HUPCL != 0; got != hangUp {
			t.Errorf("HUPCL = %v with HangUp %v", got, hangUp)
		}
		if tio.Lflag&(unix.ECHO|unix.ICANON) != 0 || tio.Cflag&unix.CBAUD != unix.B9600 {
			t.Errorf("line is not raw at 9600: %+v", tio)
		}
		f.Close()
		p.Close()
	}
}

func TestDiscardAndSettleDropWhatCameBefore(t *testing.T) {
	pty := openPTY(t)
	pty.Device.Write([]byte("stale"))
	go func() {
		time.Sleep(20 * time.Millisecond)
		pty.Device.Write([]byte("AL REBOOT\n"))
	}()
	p, err := serialport.Open(t.Context(), serialport.Config{Path: pty.Name, Baud: 9600, Settle: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	pty.Device.Write([]byte("old"))
	time.Sleep(20 * time.Millisecond)
	if err := p.Discard(); err != nil {
		t.Fatal(err)
	}
	pty.Device.Write([]byte("new"))
	buf := make([]byte, 32)
	if n, err := p.Read(t.Context(), buf); err != nil || string(buf[:n]) != "new" {
		t.Errorf("read %q, %v; want new", buf[:n], err)
	}
}

func TestIdentityComesFromSysfs(t *testing.T) {
	pty := openPTY(t)
	root := t.TempDir()
	usb := filepath.Join(root, "devices/usb1/1-1")
	iface := filepath.Join(usb, "1-1:1.0", "ttyUSB0")
	class := filepath.Join(root, "class/tty", filepath.Base(pty.Name))
	for _, d := range []string{iface, class} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	os.WriteFile(filepath.Join(usb, "idVendor"), []byte("1A86\n"), 0o644)
	os.WriteFile(filepath.Join(usb, "idProduct"), []byte("7523\n"), 0o644)
	if err := os.Symlink(iface, filepath.Join(class, "device")); err != nil {
		t.Fatal(err)
	}
	p, err := serialport.Open(t.Context(), serialport.Config{Path: pty.Name, Baud: 9600, Sysfs: root, Identity: "1a86:7523"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if p.Identity() != "1a86:7523" {
		t.Errorf("identity %q", p.Identity())
	}
}

func TestIsPTY(t *testing.T) {
	pty := openPTY(t)
	link := filepath.Join(t.TempDir(), "rotator")
	if err := os.Symlink(pty.Name, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		pty.Name: true, link: true, "/dev/null": false, "/dev/pts/ptmx": false, "/dev/pts": false, link + "x": false,
	} {
		if got := serialport.IsPTY(path); got != want {
			t.Errorf("IsPTY(%s) = %v", path, got)
		}
	}
}
