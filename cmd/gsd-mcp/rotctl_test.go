package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/peers"
)

// rotctlConfig is a station with simulated devices and the rotctld door.
const rotctlConfig = `version = 1
[station]
id = "gs-rotctl"
latitude_deg = 51.5074
longitude_deg = -0.1278
[[keep_out]]
name = "mast"
azimuth_deg = [170, 190]
elevation_deg = [0, 35]
reason = "a mast"
[rotator]
profile = "sim"
[elements]
sources = []
[simulation]
rate = 10
[rotctl]
listen = %q
principal = "uid:%d"
`

// rotctlStation runs the daemon with a port for rotctl's clients.
func rotctlStation(t *testing.T, listen string) (dir string, daemon *process) {
	t.Helper()
	dir = t.TempDir()
	config := filepath.Join(dir, "station.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, rotctlConfig, listen, os.Getuid()), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon = start(t, "serve", "--config", config, "--state-dir", filepath.Join(dir, "state"), "--socket", filepath.Join(dir, "sock"))
	return dir, daemon
}

// freePort is a TCP port that nobody had a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Debian's rotctl sets, gets, stops and parks through the daemon, and is told
// no. A web page that makes a browser talk to the port moves nothing.
func TestDebiansRotctlPointsThroughOurGate(t *testing.T) {
	rotctl := peers.Need(t, "rotctl", "libhamlib-utils")
	listen := freePort(t)
	dir, daemon := rotctlStation(t, listen)
	run := func(args ...string) (string, error) {
		out, err := exec.Command(rotctl, append([]string{"-m", "2", "-r", listen}, args...)...).CombinedOutput()
		return string(out), err
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := run(args...)
		if err != nil || strings.Contains(out, "error") {
			t.Fatalf("rotctl %v: %v, %s\n%s", args, err, out, daemon.log)
		}
		return out
	}
	position := func() (az, el float64, ok bool) {
		out, err := run("p")
		f := strings.Fields(out)
		if err != nil || len(f) != 2 {
			return 0, 0, false
		}
		az, err = strconv.ParseFloat(f[0], 64)
		if err == nil {
			el, err = strconv.ParseFloat(f[1], 64)
		}
		return az, el, err == nil
	}
	at := func(az, el float64) func() bool {
		return func() bool {
			a, e, ok := position()
			return ok && a > az-1 && a < az+1 && e > el-1 && e < el+1
		}
	}
	eventuallyTrue(t, "rotctl reads a position", 30*time.Second, func() bool { _, _, ok := position(); return ok })
	must("P", "120", "45")
	eventuallyTrue(t, "the antenna is where rotctl sent it", 30*time.Second, at(120, 45))

	for _, no := range [][2]string{{"180", "20"}, {"100", "6"}} { // the mast, and a way down that is free
		out, err := run("P", no[0], no[1])
		if refused := strings.Contains(out, "error"); refused != (no[0] == "180") {
			t.Errorf("rotctl P %v: %v, %s", no, err, out)
		}
	}
	events, err := exec.Command(program(t), "events", "--socket", filepath.Join(dir, "sock"), "--json").CombinedOutput()
	if err != nil || !bytes.Contains(events, []byte("KEEP_OUT")) {
		t.Errorf("no event says why: %v, %.2000s", err, events)
	}

	must("P", "300", "60")
	must("S")
	if out := must("_"); !strings.Contains(out, "gsd-mcp") {
		t.Errorf("info %q", out)
	}
	if out := must("dump_state"); !strings.Contains(out, "max_az=450") {
		t.Errorf("dump_state %q", out)
	}

	if r, err := http.Post("http://"+listen+"/", "text/plain", strings.NewReader("P 300 60\nS\nK\n")); err == nil {
		r.Body.Close()
		t.Errorf("a browser is answered %v", r.Status)
	}
	before, _, _ := position()
	if after, _, _ := position(); after < before-2 || after > before+2 {
		t.Errorf("the antenna went from %v to %v after a browser's request", before, after)
	}
	must("K")
	eventuallyTrue(t, "the antenna is parked", 30*time.Second, at(90, 90))
	daemon.end(t)
}

// Over a socket's path the kernel says who asks: the daemon's own account is
// operator where [access] is empty.
func TestTheRotctlSocketTellsWhoAsks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rotctl.sock")
	_, daemon := rotctlStation(t, path)
	ask := func(line string) string {
		c, err := net.DialTimeout("unix", path, time.Second)
		if err != nil {
			return err.Error()
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(10 * time.Second))
		fmt.Fprintf(c, "%s\n", line)
		var b [256]byte
		n, _ := c.Read(b[:])
		fmt.Fprint(c, "q\n")
		return string(b[:n])
	}
	eventuallyTrue(t, "a position", 30*time.Second, func() bool { return strings.Count(ask("p"), "\n") == 2 })
	if got := ask("P 120 45"); got != "RPRT 0\n" {
		t.Errorf("P is answered %q\n%s", got, daemon.log)
	}
	daemon.end(t)
}
