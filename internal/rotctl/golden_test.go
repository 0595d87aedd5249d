package rotctl

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/unit"
)

// A stand is a station that stands at 0/0 and takes everything from -180 to 450
// and 0 to 90, as Hamlib's dummy does.
type stand struct {
	mu   sync.Mutex
	done []string
	slow bool // commands last until they are given up
	rule safety.Rules
}

func newStand() *stand {
	return &stand{rule: safety.Rules{Travel: safety.Travel{AzMinDeg: -180, AzMaxDeg: 450, ElMaxDeg: 90}}}
}

func (s *stand) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.done = append(s.done, what)
}

func (s *stand) Do(ctx context.Context, c station.Command) station.Result {
	s.note(string(c.Verb))
	if s.slow {
		<-ctx.Done()
		return station.Result{Err: ctx.Err()}
	}
	if c.Target != nil && !(c.Target.ElDeg >= 0 && c.Target.ElDeg <= 90) {
		return station.Result{Refusal: safety.Refuse(safety.ElevationLimit, "", "")}
	}
	return station.Result{}
}

func (s *stand) Halt(context.Context, station.Caller) (bool, error) {
	s.note("halt")
	return true, nil
}

func (s *stand) Stop(context.Context, station.Caller, string) station.StopAnswer {
	return station.StopAnswer{Sent: true}
}
func (s *stand) SessionEnded(string) { s.note("ended") }
func (s *stand) SessionLeft(string)  { s.note("left") }
func (s *stand) Antenna() station.AntennaView {
	return station.AntennaView{Present: true, Feedback: "measured", Measured: &unit.AzEl{}}
}
func (s *stand) Rules() *safety.Rules { return &s.rule }

// serve runs f in a bubble with a server on the stand.
func (s *stand) serve(t *testing.T, f func(t *testing.T, l *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &pipes{in: make(chan net.Conn), done: make(chan struct{})}
		ctx, cancel := context.WithCancel(context.Background())
		served := make(chan error, 1)
		srv := New(Options{Station: s, Info: "Dummy rotator", Identify: func(net.Conn) (Who, error) { return operator, nil }})
		go func() { served <- srv.Serve(ctx, l) }()
		f(t, l)
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

type capture struct {
	Cmd, Note string
	TX        string `json:"tx_hex"`
	RX        string `json:"rx_hex"`
	Stable    *bool
	Closed    bool
	Exchange  []struct{ Dir, Hex string }
}

func captures(t *testing.T, name string) (list []capture) {
	t.Helper()
	f, err := os.Open("../../testdata/hamlib/rotator/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c capture
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		list = append(list, c)
	}
	if lines.Err() != nil || len(list) == 0 {
		t.Fatalf("%s: %d captures, %v", name, len(list), lines.Err())
	}
	return list
}

func unhex(t *testing.T, s string) string {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const ourState = "1\n2\nmin_az=-180.000000\nmax_az=450.000000\nmin_el=0.000000\nmax_el=90.000000\nsouth_zero=0\nrot_type=AzEl\ndone\n"

// deviations are the requests that we answer otherwise than Hamlib 4.5.4, on
// purpose. Each has its row in docs/rotctl.md.
func deviations() map[string]string {
	d := map[string]string{
		"P\n0\n0\n":      "RPRT -1\nRPRT -4\nRPRT -4\n",
		"P 10 91\n":      "RPRT -21\n",
		"P 10 -1\n":      "RPRT -21\n",
		"P 0 0 30\n":     "RPRT -1\n",
		"P 10\n":         "RPRT -1\n",
		"P nan nan\n":    "RPRT -1\n",
		"P 0x10 0x5\n":   "RPRT -1\n",
		"P 1e2 4e1\n":    "RPRT -1\n",
		"pp\n":           "RPRT -4\n",
		"p p\n":          "RPRT -1\n",
		"get_pos\n":      "0.00\n0.00\n",
		"?\n":            "RPRT -1\n",
		"+\\bogus\n":     "RPRT -4\n",
		"+\\reset 1\n":   "reset: 1\nRPRT -11\n",
		"+\\move 8 50\n": "move: 8 50\nRPRT -11\n",
		"\\dump_state\n": ourState,
	}
	d["+\\get_level SPEED\n"] = "get_level: SPEED\nRPRT -11\n"
	d["+\\dump_state\n"] = "dump_state:\nrotctld Protocol Ver: 1\nRotor Model: 2\nMinimum Azimuth: -180.000000\nMaximum Azimuth: 450.000000\nMinimum Elevation: 0.000000\nMaximum Elevation: 90.000000\nSouth Zero: 0\nrot_type=AzEl\ndone\nRPRT 0\n"
	d[";\\dump_state\n"] = strings.ReplaceAll(strings.TrimSuffix(d["+\\dump_state\n"], "RPRT 0\n"), "\n", ";") + "RPRT 0\n"
	for _, c := range []string{"R 0", "R 1", "\\reset 1", "R", "v SPEED", "V ?", "v ?", "u ?", "U ?", "x ?", "X ?", "C 1 0", "M 2", "M 2 50", "M 4 50", "M 8 50",
		"M 16 50", "M UP 50", "M DOWN 50", "M LEFT 50", "M RIGHT 50", "M CW 50", "M CCW 50", "M 32 50", "M BOGUS 50", "M 2 -1", "M 2 0", "M 2 101"} {
		d[c+"\n"] = "RPRT -11\n"
	}
	for _, c := range []string{"Z", "\\bogus", "+Z", "\\chk_vfo", "\xff\xfe\xfd", "w ABC", "L 10 20 6", "l JO20", "A 90", "B 0 0 10 10", "\\pause 1"} {
		d[c+"\n"] = "RPRT -4\n"
	}
	return d
}

// Every answer of Debian's rotctld to its dummy rotator is ours, but for the
// deviations.
func TestAnswersAreHamlibsWhereItIsRight(t *testing.T) {
	page, err := os.ReadFile("../../docs/rotctl.md")
	if err != nil {
		t.Fatal(err)
	}
	left := deviations()
	newStand().serve(t, func(t *testing.T, l *pipes) {
		for _, c := range captures(t, "rotctld_dummy.jsonl") {
			tx := unhex(t, c.TX)
			if c.Stable != nil && !*c.Stable || strings.Contains(c.Note, "two writes") || tx == "1\n" || tx == "+1\n" {
				continue // positions of a moving dummy; TestALineMayComeInPieces; a dump of another rotator
			}
			want := unhex(t, c.RX)
			if w, ok := deviations()[tx]; ok {
				want = w
				delete(left, tx)
			}
			client := dial(t, l)
			client.send(tx)
			got := all(client)
			if got != want {
				t.Errorf("%q (%s) is answered %q, want %q", c.Cmd, c.Note, got, want)
			}
			if c.Closed && !client.closed() {
				t.Errorf("%q does not close the connection", c.Cmd)
			}
			client.vanish()
		}
	})
	for tx, want := range left {
		t.Errorf("the deviation %q: %q is in no capture", tx, want)
	}
	for tx := range deviations() {
		word := strings.Fields(strings.TrimLeft(tx, "+;"))[0]
		if word[0] < 0x80 && !bytes.Contains(page, []byte("`"+word+" ")) && !bytes.Contains(page, []byte("`"+word+"`")) {
			t.Errorf("the deviation %q has no row in docs/rotctl.md", tx)
		}
	}
}

// all is everything that comes back within a fake second.
func all(c *client) string {
	time.Sleep(time.Second)
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.got.String()
	c.got.Reset()
	return s
}

// What Debian's rotctl -m 2 writes, and what it needs to hear.
func TestTheNetworkRotatorOfHamlibIsUnderstood(t *testing.T) {
	newStand().serve(t, func(t *testing.T, l *pipes) {
		for _, c := range captures(t, "netrotctl.jsonl") {
			if c.Note != "" { // servers that misbehave: TestServersThatLie of the driver's
				continue
			}
			client := dial(t, l)
			for i, x := range c.Exchange {
				if x.Dir != "tx" {
					continue
				}
				tx := unhex(t, x.Hex)
				client.send(tx)
				if tx == "q\n" {
					continue
				}
				want := unhex(t, c.Exchange[i+1].Hex)
				if w, ok := deviations()[tx]; ok {
					want = w
				}
				if strings.HasPrefix(tx, "M 8") {
					want = "RPRT -11\n"
				}
				if got := all(client); got != want {
					t.Errorf("%s: %q is answered %q, want %q", c.Cmd, tx, got, want)
				}
			}
			client.vanish()
		}
	})
}

func TestALineMayComeInPieces(t *testing.T) {
	s := newStand()
	s.serve(t, func(t *testing.T, l *pipes) {
		c := dial(t, l)
		for _, part := range []string{"P", " 0 ", "0"} {
			c.send(part)
			if got := all(c); got != "" {
				t.Fatalf("a part of a line is answered %q", got)
			}
		}
		c.send("\r\np\n")
		if got := all(c); got != "RPRT 0\n0.00\n0.00\n" {
			t.Errorf("the whole line is answered %q", got)
		}
		c.send("P 10 10") // and never ended
		c.vanish()
		time.Sleep(time.Second)
	})
	if got := strings.Join(s.done, " "); got != "point ended" {
		t.Errorf("the station did %q, want one move and the session's end", got)
	}
}

func TestMistakesWithoutEndCloseTheConnection(t *testing.T) {
	newStand().serve(t, func(t *testing.T, l *pipes) {
		c := dial(t, l)
		for range maxMistakes - 1 {
			c.want("EHLO example.org", "RPRT -4\n")
		}
		c.want("p", "0.00\n0.00\n") // one that makes sense forgives the others
		for range maxMistakes {
			c.want("EHLO example.org", "RPRT -4\n")
		}
		if !c.closed() {
			t.Error("the connection is open still")
		}
		c = dial(t, l)
		c.want(strings.Repeat("A", maxLine+100), "RPRT -1\n")
		if !c.closed() {
			t.Error("a line without end leaves the connection open: its rest could be taken for commands")
		}
	})
}

// A stop overtakes the move before it, which may be waiting for a device or a
// disk, and the moves that wait behind that one.
func TestAStopOvertakesMoves(t *testing.T) {
	s := newStand()
	s.slow = true
	s.serve(t, func(t *testing.T, l *pipes) {
		c := dial(t, l)
		c.send("P 10 10\nP 20 20\np\n")
		if got := all(c); got != "" {
			t.Fatalf("answered %q before the move was", got)
		}
		c.send("S\np\n")
		if got := all(c); got != "RPRT -9\nRPRT -9\n0.00\n0.00\nRPRT 0\n0.00\n0.00\n" {
			t.Errorf("answered %q", got)
		}
		c.send("q\n")
		time.Sleep(time.Second)
	})
	if got := strings.Join(s.done, " "); got != "point halt halt left" {
		t.Errorf("the station did %q", got)
	}
}

// A client that vanishes while its move is being worked ends it.
func TestTheEndOvertakesMoves(t *testing.T) {
	s := newStand()
	s.slow = true
	s.serve(t, func(t *testing.T, l *pipes) {
		c := dial(t, l)
		c.send("P 10 10\nP 20 20\n")
		time.Sleep(time.Second)
		c.vanish()
		time.Sleep(time.Second)
	})
	if got := strings.Join(s.done, " "); got != "point ended" {
		t.Errorf("the station did %q", got)
	}
}

func TestThereIsAnEndToClients(t *testing.T) {
	newStand().serve(t, func(t *testing.T, l *pipes) {
		for range maxSessions {
			defer dial(t, l).vanish()
		}
		synctest.Wait()
		if c := dial(t, l); !c.closed() {
			t.Errorf("client %d is let in", maxSessions+1)
		}
	})
}
