package door

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// A client at the stdin and stdout of a bridge.
type bridged struct {
	*wire
	done   chan error
	cancel context.CancelFunc
}

func startBridge(t *testing.T, o BridgeOptions) *bridged {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	b := &bridged{newWire(t, inW, outR), make(chan error, 1), cancel}
	if o.Build == "" {
		o.Build = "build-1"
	}
	go func() {
		err := Bridge(ctx, inR, outW, o)
		outW.Close()
		b.done <- err
	}()
	t.Cleanup(func() {
		cancel()
		inW.Close()
		outR.Close()
	})
	return b
}

func (b *bridged) result() error {
	b.t.Helper()
	select {
	case err := <-b.done:
		return err
	case <-time.After(patience):
		b.t.Fatal("the bridge does not end")
		return nil
	}
}

// A scripted daemon answers what its script says.
type daemon struct {
	net.Conn
	in *bufio.Reader
	t  *testing.T
}

func (d *daemon) want(parts ...string) string {
	line, err := d.in.ReadString('\n')
	if err != nil {
		d.t.Errorf("the daemon waits for %q: %v", parts, err)
	}
	for _, p := range parts {
		if !strings.Contains(line, p) {
			d.t.Errorf("the daemon got %s\nwant %q in it", line, p)
		}
	}
	return line
}

func (d *daemon) say(lines ...string) { io.WriteString(d, strings.Join(lines, "\n")+"\n") }

// script serves connections on a socket, one function each, in order.
func script(t *testing.T, socket string, sessions ...func(d *daemon)) {
	t.Helper()
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer l.Close()
		for _, s := range sessions {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			c.SetDeadline(time.Now().Add(patience))
			s(&daemon{c, bufio.NewReader(c), t})
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
}

func TestBridgeCarriesASession(t *testing.T) {
	h := open(t, socketPath(t), nil)
	b := startBridge(t, BridgeOptions{Socket: h.socket, Role: "operator"})
	b.greet()
	b.send(callLine(1, "get_thing"), callLine(2, "move_thing"))
	b.wantAll(`"id":1,"result".*for operator`, `"id":2,"result".*SUN`)
	b.send(`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`)
	b.want(`"id":9007199254740993`)
	long := `{"jsonrpc":"2.0","id":3,"method":"ping","params":{"pad":"`
	long += strings.Repeat("x", MaxLine-len(long)-3) + `"}}`
	b.send(long, long+" ", callLine(4, "get_thing"))
	b.wantAll(`"id":3,"result"`, `"id":null,"error".*longer than 1048576`, `"id":4,"result"`)
	b.w.Close()
	if err := b.result(); err != nil {
		t.Errorf("after the end of stdin: %v", err)
	}
	b.ends()
	if h.saw(BuildSkew) != 0 {
		t.Error("equal builds are reported as different")
	}
}

func TestNoPrivateMethodPassesTheBridge(t *testing.T) {
	got := make(chan string, 100)
	socket := socketPath(t)
	script(t, socket, func(d *daemon) {
		defer close(got)
		for {
			line, err := d.in.ReadString('\n')
			if err != nil {
				return
			}
			got <- line
		}
	})
	b := startBridge(t, BridgeOptions{Socket: socket})
	for i, line := range []string{
		`{"jsonrpc":"2.0","id":%d,"method":"gsd/approve","params":{}}`,
		`{"jsonrpc":"2.0","id":%d,"method":"gsd\/arm"}`,
		`{"jsonrpc":"2.0","method":"ping","id":%d,"\u006dethod":"\u0067sd/key"}`,
		` { "method" : "gsd/bridge" , "id" : %d , "jsonrpc":"2.0" } `,
	} {
		b.send(fmt.Sprintf(line, i))
		b.want(fmt.Sprintf(`"id":%d,"error"`, i), "-32601")
	}
	b.send(`{"jsonrpc":"2.0","method":"gsd/estop"}`, `{"jsonrpc":"2.0","id":99,"method":"ping"}`)
	b.w.Close()
	b.result()
	var all []string
	for line := range got {
		all = append(all, line)
	}
	if len(all) != 2 || !strings.Contains(all[0], `"method":"gsd/bridge","params":{"build":"build-1"}`) || !strings.Contains(all[1], `"id":99`) {
		t.Errorf("the daemon got %q, want the bridge's own line and the ping", all)
	}
}

func TestBridgeAnswersWhatWasAskedBeforeTheEnd(t *testing.T) {
	h := open(t, socketPath(t), nil)
	b := startBridge(t, BridgeOptions{Socket: h.socket})
	b.send(initializeLine, initializedLine, callLine(1, "get_thing"), callLine(2, "slow_thing"), "nonsense")
	b.w.Close() // as printf | gsd-mcp does
	eventually(t, "the call is running", func() bool { return h.did() == "slow" })
	time.AfterFunc(300*time.Millisecond, func() { close(h.slow) })
	b.wantAll(`"id":"init","result"`, `"id":1,"result"`, `"id":null,"error".*-32700`, `"id":2,"result".*at last`)
	b.ends()
	if err := b.result(); err != nil {
		t.Errorf("the bridge ended with %v", err)
	}
}

func TestBridgeDoesNotWaitForEverAtTheEnd(t *testing.T) {
	socket, over := socketPath(t), make(chan struct{})
	script(t, socket, func(d *daemon) {
		d.want("gsd/bridge")
		d.want(`"id":1`)
		<-over // and no answer
	})
	defer close(over)
	b := startBridge(t, BridgeOptions{Socket: socket})
	b.send(callLine(1, "get_thing"))
	began := time.Now()
	b.w.Close()
	b.want(`"id":1,"error"`, "-32603", "no answer within")
	b.result()
	if took := time.Since(began); took < 2*time.Second || took > 4*time.Second {
		t.Errorf("it waited %v, want 2 s", took)
	}
}

func TestBridgeDoesNotWaitForCancelledCalls(t *testing.T) {
	socket, over := socketPath(t), make(chan struct{})
	script(t, socket, func(d *daemon) { <-over })
	defer close(over)
	b := startBridge(t, BridgeOptions{Socket: socket})
	b.send(callLine(1, "get_thing"), `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	began := time.Now()
	b.w.Close()
	b.ends()
	if took := time.Since(began); took > 1500*time.Millisecond {
		t.Errorf("it waited %v for a call whose answer will not come", took)
	}
}

func TestBridgeSurvivesARestartOfTheDaemon(t *testing.T) {
	socket := socketPath(t)
	h := open(t, socket, nil)
	b := startBridge(t, BridgeOptions{Socket: socket})
	b.greet()
	b.send(`{"jsonrpc":"2.0","id":5,"method":"resources/subscribe","params":{"uri":"station://thing"}}`)
	b.want(`"id":5,"result"`)
	b.send(callLine(1, "slow_thing"))
	eventually(t, "the call is running", func() bool { return h.did() == "slow" })
	h.kill()
	b.want(`"id":1,"error"`, "-32603", "the station restarted; read get_station_health")
	h = open(t, socket, nil)
	// No second answer to initialize, no handshake by the client: it goes on.
	b.want(`"notifications/tools/list_changed"`)
	b.send(callLine(2, "get_thing"))
	b.want(`"id":2,"result"`)
	h.server.ResourceUpdated("station://thing")
	b.want(`"notifications/resources/updated"`, "station://thing")
	b.w.Close()
	if err := b.result(); err != nil {
		t.Errorf("the bridge ended with %v", err)
	}
	b.ends()
}

func TestRestartRepeatsTheHandshakeOnce(t *testing.T) {
	socket := socketPath(t)
	answer := `{"jsonrpc":"2.0","id":"init","result":{"protocolVersion":"2025-11-25"}}`
	script(t, socket,
		func(d *daemon) { // dies with the handshake unanswered
			d.want("gsd/bridge")
			d.want(`"initialize"`)
		},
		func(d *daemon) { // answers it, and dies with two calls open
			d.want("gsd/bridge")
			d.want(`"initialize"`)
			d.say(answer)
			d.want("notifications/initialized")
			d.want(`"id":1,`)
			d.want(`"id":2,`)
			d.say(`{"jsonrpc":"2.0","id":1,"result":{"late":false}}`)
			io.WriteString(d, `{"jsonrpc":"2.0","id":2,"resul`) // torn
		},
		func(d *daemon) { // gets it repeated
			d.want("gsd/bridge")
			d.want(`"initialize"`)
			d.want("notifications/initialized")
			d.say(answer)
			d.want(`"id":3,`)
			d.say(`{"jsonrpc":"2.0","id":3,"result":{}}`)
			io.Copy(io.Discard, d.in)
		})
	b := startBridge(t, BridgeOptions{Socket: socket})
	b.send(initializeLine)
	b.want(`"id":"init","result"`)
	b.send(initializedLine, callLine(1, "a"), callLine(2, "b"))
	b.want(`"id":1,"result"`)
	b.want(`"id":2,"error"`, "the station restarted")
	b.want("tools/list_changed")
	b.send(callLine(3, "c"))
	b.want(`"id":3,"result"`)
	b.w.Close()
	b.ends()
}

func TestModernClientIsNotToldWhatItDidNotAskFor(t *testing.T) {
	socket := socketPath(t)
	script(t, socket,
		func(d *daemon) { d.want("gsd/bridge"); d.want(`"id":1,`) },
		func(d *daemon) {
			d.want("gsd/bridge")
			d.want(`"id":2,`)
			d.say(`{"jsonrpc":"2.0","id":2,"result":{}}`)
			io.Copy(io.Discard, d.in)
		})
	b := startBridge(t, BridgeOptions{Socket: socket})
	b.send(callLine(1, "a"))
	b.want(`"id":1,"error"`)
	b.send(callLine(2, "a"))
	b.want(`"id":2,"result"`)
	b.w.Close()
	b.ends()
}

func TestRequestsDuringARestartWaitALittle(t *testing.T) {
	socket := socketPath(t)
	h := open(t, socket, nil)
	lost := make(chan string, 10)
	b := startBridge(t, BridgeOptions{Socket: socket, Note: func(s string) { lost <- s }})
	b.greet()
	h.stop()
	<-lost
	b.send(callLine(2, "get_thing")) // nobody is there
	select {
	case line := <-b.lines:
		t.Fatalf("without a daemon the bridge says %s", line)
	case <-time.After(300 * time.Millisecond): // a restart takes time
	}
	open(t, socket, nil)
	b.wantAll("tools/list_changed", `"id":2,"result"`)
}

func TestRequestsDuringALongOutageAreAnswered(t *testing.T) {
	socket := socketPath(t)
	h := open(t, socket, nil)
	lost := make(chan string, 10)
	b := startBridge(t, BridgeOptions{Socket: socket, Hold: 300 * time.Millisecond, ComeBack: time.Second, Note: func(s string) { lost <- s }})
	b.greet()
	h.stop()
	<-lost
	b.send(callLine(2, "move_thing"))
	b.want(`"id":2,"error"`, "-32603", "nothing was done")
	b.send(callLine(3, "move_thing"))
	b.want(`"id":3,"error"`, "-32603", "nothing was done")
	if err := b.result(); !errors.Is(err, ErrUnreachable) {
		t.Errorf("after waiting in vain the bridge ends with %v, want ErrUnreachable", err)
	}
}

func TestBridgeWithoutADaemon(t *testing.T) {
	socket := socketPath(t)
	b := startBridge(t, BridgeOptions{Socket: socket})
	err := b.result()
	var u *UnreachableError
	if !errors.Is(err, ErrUnreachable) || !errors.As(err, &u) || !strings.Contains(u.Error(), socket) || !strings.Contains(u.Hint(), "systemctl start gsd-mcp") {
		t.Errorf("Bridge without a daemon = %v", err)
	}
}

func TestBridgeRefusesARoleThatDoesNotExist(t *testing.T) {
	b := startBridge(t, BridgeOptions{Socket: "/nowhere", Role: "root"})
	if err := b.result(); err == nil || !strings.Contains(err.Error(), "want observer, operator or supervisor") {
		t.Errorf("Bridge with role root = %v", err)
	}
}

func TestBridgeTellsItsClientThatTheHouseIsFull(t *testing.T) {
	h := open(t, socketPath(t), nil)
	for range MaxSessions {
		x := dialWire(t, h.socket)
		x.greet()
	}
	b := startBridge(t, BridgeOptions{Socket: h.socket})
	b.send(initializeLine)
	b.want(`"id":"init","error"`, "all 16 sessions")
	var refused *RefusedError
	if err := b.result(); !errors.As(err, &refused) {
		t.Errorf("the bridge ended with %v", err)
	}
}

func TestBridgeEndsWithItsClient(t *testing.T) {
	h := open(t, socketPath(t), nil)
	outR, outW := io.Pipe()
	inR, inW := io.Pipe()
	defer inW.Close()
	done := make(chan error, 1)
	go func() { done <- Bridge(t.Context(), inR, outW, BridgeOptions{Socket: h.socket}) }()
	outR.Close() // a dropped ssh link
	inW.Write([]byte(initializeLine + "\n"))
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("the bridge ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the bridge outlives its client")
	}
	eventually(t, "the session is over", func() bool { return len(h.door.Sessions()) == 0 })
}

func TestBridgeEndsOnASignal(t *testing.T) {
	h := open(t, socketPath(t), nil)
	b := startBridge(t, BridgeOptions{Socket: h.socket})
	b.greet()
	b.cancel()
	if err := b.result(); err != nil {
		t.Errorf("the bridge ended with %v", err)
	}
	eventually(t, "the session is over", func() bool { return len(h.door.Sessions()) == 0 })
}

func TestDaemonThatFallsOverAtOnceIsLeftInPeace(t *testing.T) {
	socket := socketPath(t)
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	came := make(chan int, 1)
	go func() {
		n := 0
		for {
			c, err := l.Accept()
			if err != nil {
				came <- n
				return
			}
			n++
			c.Close()
		}
	}()
	b := startBridge(t, BridgeOptions{Socket: socket, ComeBack: time.Second})
	if err := b.result(); !errors.Is(err, ErrUnreachable) {
		t.Errorf("the bridge ended with %v, want ErrUnreachable", err)
	}
	l.Close()
	if n := <-came; n < 3 || n > 10 {
		t.Errorf("it dialled %d times in a second, want about 5", n)
	}
}
