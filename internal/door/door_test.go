package door

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gsd-mcp/internal/mcp"
	"gsd-mcp/internal/station"
)

func TestPeerIsWhoeverTheKernelSays(t *testing.T) {
	path := socketPath(t)
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	p, err := PeerOf(in)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := os.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	if p.UID != uint32(os.Getuid()) || p.GID != uint32(os.Getgid()) || p.PID != int32(os.Getpid()) {
		t.Errorf("PeerOf = %+v, want this process: uid %d, gid %d, pid %d", p, os.Getuid(), os.Getgid(), os.Getpid())
	}
	for _, g := range groups {
		if !slices.Contains(p.GIDs, uint32(g)) {
			t.Errorf("PeerOf has gids %v, without %d", p.GIDs, g)
		}
	}
}

func TestPeersOfOtherUsers(t *testing.T) {
	needRoot(t)
	dir := openDir(t)
	socket := filepath.Join(dir, "gsd.sock")
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	many := make([]uint32, 500) // more than the first buffer of peerGroups
	for i := range many {
		many[i] = uint32(70000 + i)
	}
	for _, tt := range []struct {
		name string
		cred syscall.Credential
		user string
	}{
		{"without a name", syscall.Credential{Uid: 12345, Gid: 23456, Groups: []uint32{34567, 45678}}, ""},
		{"an account", syscall.Credential{Uid: 1, Gid: 1, Groups: []uint32{20}}, "daemon"},
		{"in 500 groups", syscall.Credential{Uid: 12346, Gid: 1, Groups: many}, ""},
		{"without groups", syscall.Credential{Uid: 12347, Gid: 12347}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			as(t, dir, "raw", socket, &tt.cred)
			in, err := l.AcceptUnix()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			p, err := PeerOf(in)
			if err != nil {
				t.Fatal(err)
			}
			if p.UID != tt.cred.Uid || p.GID != tt.cred.Gid || p.User != tt.user {
				t.Errorf("PeerOf = %v (gid %d), want %+v, user %q", p, p.GID, tt.cred, tt.user)
			}
			for _, g := range append(tt.cred.Groups, tt.cred.Gid) {
				if !slices.Contains(p.GIDs, g) {
					t.Fatalf("gid %d is missing in %v", g, p.GIDs)
				}
			}
			for _, g := range p.GIDs { // and nothing of the test's own
				if g != tt.cred.Gid && !slices.Contains(tt.cred.Groups, g) {
					t.Errorf("gid %d in %v is not one of the peer's", g, p.GIDs)
				}
			}
		})
	}
}

func TestRolesOfOtherUsersOverTheSocket(t *testing.T) {
	needRoot(t)
	dir := openDir(t)
	h := open(t, filepath.Join(dir, "gsd.sock"), mustPolicy(t, Access{
		Observer: []string{"uid:12345"}, Operator: []string{"group:daemon"}, Supervisor: []string{"uid:12347"}, Agents: []string{"uid:12347"},
	}))
	t.Run("an observer reads, and is refused the rest", func(t *testing.T) {
		x := as(t, dir, "raw", h.socket, &syscall.Credential{Uid: 12345, Gid: 12345})
		x.greet()
		x.send(callLine(1, "get_thing"), callLine(2, "move_thing"), privateLine(3, "gsd/resume"))
		x.wantAll(`"id":1,"result".*for observer`, `"id":2,.*isError`, `"id":3,"error".*NOT_PERMITTED.*needs the role operator`)
	})
	t.Run("a group gives a role", func(t *testing.T) {
		x := as(t, dir, "raw", h.socket, &syscall.Credential{Uid: 12346, Gid: 12346, Groups: []uint32{1}})
		x.greet()
		x.send(callLine(1, "get_thing"), privateLine(3, "gsd/resume"))
		x.wantAll(`"id":1,"result".*for operator`, `"id":3,"result".*"by":12346`)
	})
	t.Run("an agent is no person, whatever its role", func(t *testing.T) {
		x := as(t, dir, "raw", h.socket, &syscall.Credential{Uid: 12347, Gid: 12347})
		x.greet()
		x.send(privateLine(1, "gsd/approve"), privateLine(2, "gsd/resume"), privateLine(3, "gsd/estop"), privateLine(4, "gsd/audit"))
		x.wantAll(`"id":1,"error".*marked as an agent`, `"id":2,"error".*marked as an agent`, `"id":3,"error".*marked as an agent`, `"id":4,"result"`)
	})
	t.Run("a stranger is told what to add", func(t *testing.T) {
		x := as(t, dir, "raw", h.socket, &syscall.Credential{Uid: 12348, Gid: 12348})
		x.greet()
		x.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, callLine(2, "get_thing"), privateLine(3, "gsd/approve"), privateLine(4, "gsd/estop"),
			`{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"station://thing"}}`)
		x.wantAll(`"id":1,"result"`, `"id":2,"result".*uid:12348.*isError`, `"id":3,"error"`, `"id":4,"error"`, `"id":5,"error".*uid:12348`)
	})
	t.Run("the bridge of an agent reaches nothing private", func(t *testing.T) {
		x := as(t, dir, "bridge", h.socket, &syscall.Credential{Uid: 12347, Gid: 12347}, "GSD_ROLE=supervisor")
		x.greet()
		x.send(privateLine(4, "gsd/audit"))
		x.want(`"id":4,"error"`, "-32601")
	})
	if ran := h.did(); strings.Count(ran, "gsd/resume") != 1 || strings.Contains(ran, "gsd/approve") || strings.Contains(ran, "gsd/estop") || strings.Contains(ran, "moved") {
		t.Errorf("what ran: %s", ran)
	}
}

func TestSeventeenthSessionIsToldWhy(t *testing.T) {
	h := open(t, socketPath(t), nil)
	var inside []*wire
	for range MaxSessions {
		x := dialWire(t, h.socket)
		x.greet()
		inside = append(inside, x)
	}
	x := dialWire(t, h.socket)
	x.want(`"jsonrpc":"2.0"`, `"id":null`, `-32603`, "all 16 sessions")
	x.ends()
	c, err := Dial(t.Context(), h.socket, "test 1")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.CallTool(t.Context(), "get_thing", nil); err == nil || !strings.Contains(err.Error(), "all 16 sessions") {
		t.Errorf("the client's error is %v", err)
	}
	inside[3].w.Close()
	eventually(t, "a place is free", func() bool { return len(h.door.Sessions()) < MaxSessions })
	y := dialWire(t, h.socket)
	y.greet()
	inside[0].send(callLine(1, "get_thing")) // those inside go on
	inside[0].want(`"id":1,"result"`)
}

func TestAgentsLeavePlacesForPeople(t *testing.T) {
	d := New(Options{Policy: mustPolicy(t, Access{})})
	add := func(role station.Role, agent bool) string {
		s := &Session{ID: newID(), granted: station.Caller{Role: role, Agent: agent}}
		if role == station.NoRole {
			s.Denied = mustPolicy(t, Access{}).Denial(Peer{UID: 9})
		}
		kind, _ := d.enter(s)
		return kind
	}
	for i := range strangerPlaces + 1 {
		if got := add(station.NoRole, false); (got == "") != (i < strangerPlaces) {
			t.Errorf("stranger %d: %q", i, got)
		}
	}
	for i := range MaxSessions {
		if got := add(station.Supervisor, true); (got == "") != (i < agentPlaces-strangerPlaces) {
			t.Errorf("agent %d: %q", i, got)
		}
	}
	for i := range MaxSessions - agentPlaces + 1 {
		if got := add(station.Observer, false); (got == "") != (i < MaxSessions-agentPlaces) {
			t.Errorf("person %d: %q", i, got)
		}
	}
}

func TestBridgeLineOnlyTakesRightsAway(t *testing.T) {
	for _, tt := range []struct {
		held   station.Role
		params string
		want   station.Role
		ro     bool
	}{
		{station.Supervisor, `{"build":"b"}`, station.Supervisor, false},
		{station.Supervisor, `{"build":"b","role":"observer"}`, station.Observer, false},
		{station.Supervisor, `{"build":"b","read_only":true}`, station.Observer, true},
		{station.Supervisor, `{"build":"b","role":"operator","read_only":true}`, station.Observer, true},
		{station.Observer, `{"build":"b","role":"supervisor"}`, station.Observer, false},
		{station.Observer, `{"build":"b","read_only":false}`, station.Observer, false},
		{station.NoRole, `{"build":"b","role":"supervisor"}`, station.NoRole, false},
	} {
		s := &Session{Caller: station.Caller{Role: tt.held}, Private: nil}
		if err := s.heed([]byte(tt.params)); err != nil {
			t.Errorf("%s: %v", tt.params, err)
		}
		if s.Caller.Role != tt.want || s.ReadOnly != tt.ro || !s.Bridged {
			t.Errorf("%s of a %v: role %v, read-only %v, bridged %v; want %v, %v, true", tt.params, tt.held, s.Caller.Role, s.ReadOnly, s.Bridged, tt.want, tt.ro)
		}
	}
	for _, bad := range []string{`{"role":"admin"}`, `{"build":1}`, `{"only_tools":["get_thing"]}`, `[]`, `null x`, ``, `{"read_only":"yes"}`, `{"role":"none"}`} {
		s := &Session{Caller: station.Caller{Role: station.Supervisor}}
		if err := s.heed([]byte(bad)); err == nil {
			t.Errorf("bridge line with params %q is accepted", bad)
		}
	}
}

func TestBridgedSessionHasNoPrivateMethods(t *testing.T) {
	h := open(t, socketPath(t), nil)
	x := dialWire(t, h.socket) // a bridge that does not hold them back itself
	x.send(`{"jsonrpc":"2.0","method":"gsd/bridge","params":{"build":"build-0","role":"operator"}}`, initializeLine)
	x.want(`"id":"init"`, `"result"`)
	x.send(initializedLine, privateLine(1, "gsd/resume"), callLine(2, "get_thing"), `{"jsonrpc":"2.0","id":3,"method":"\u0067sd/resume","params":{}}`)
	x.wantAll(`"id":1,"error".*-32601`, `"id":2,"result".*for operator`, `"id":3,"error".*-32601`)
	if h.did() != "" {
		t.Errorf("what ran: %s", h.did())
	}
	if h.saw(BuildSkew) != 1 {
		t.Error("nobody was told that bridge and daemon are of different builds")
	}
	direct := dialWire(t, h.socket)
	direct.greet()
	direct.send(`{"jsonrpc":"2.0","method":"gsd/bridge","params":{"build":"x","role":"none"}}`, privateLine(1, "gsd/resume"),
		`{"jsonrpc":"2.0","id":2,"method":"gsd/bridge","params":{"build":"x"}}`)
	direct.wantAll(`"id":1,"result".*"client":"wire"`, `"id":2,"error".*-32601`)
}

func TestNonsenseFromABridgeEndsTheSession(t *testing.T) {
	h := open(t, socketPath(t), nil)
	x := dialWire(t, h.socket)
	x.send(`{"jsonrpc":"2.0","method":"gsd/bridge","params":{"build":"x","role":"king"}}`, initializeLine)
	x.want(`"id":null`, "limit the session to a role", "king")
	x.ends()
	if h.saw(SessionRefused) != 1 || h.saw(SessionOpened) != 0 {
		t.Errorf("notices: %+v", h.notices)
	}
}

func TestFirstLineMayBeAnything(t *testing.T) {
	h := open(t, socketPath(t), nil)
	for name, tt := range map[string]struct{ send, want string }{
		"longer than the bridge's": {`{"jsonrpc":"2.0","id":7,"method":"ping","params":{"pad":"` + strings.Repeat("x", 3*maxHello) + `"}}`, `"id":7`},
		"not JSON":                 {`hello`, "-32700"},
		"a private notification":   {`{"jsonrpc":"2.0","method":"gsd/resume"}` + "\n" + `{"jsonrpc":"2.0","id":7,"method":"ping"}`, `"id":7`},
		"empty":                    {"\n\n" + `{"jsonrpc":"2.0","id":7,"method":"ping"}`, `"id":7`},
		"a bridge's with an id":    {`{"jsonrpc":"2.0","id":7,"method":"gsd/bridge","params":{}}`, `"id":7`},
	} {
		x := dialWire(t, h.socket)
		x.send(tt.send)
		x.want(tt.want)
		x.w.Close()
		eventually(t, "the session after "+name+" is over", func() bool { return len(h.door.Sessions()) == 0 })
	}
	if h.did() != "" {
		t.Errorf("a notification ran %s", h.did())
	}
	x := dialWire(t, h.socket)
	x.w.Write([]byte(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)) // without its newline, then the end
	x.w.(*net.UnixConn).CloseWrite()
	x.want(`"id":7`)
	x.ends()
}

func TestSessionsHaveARequestBudget(t *testing.T) {
	h := open(t, socketPath(t), nil)
	x := dialWire(t, h.socket)
	x.greet()
	const asked = 60
	for i := range asked {
		x.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, i))
	}
	limited := 0
	for range asked {
		if strings.Contains(x.next(), "RATE_LIMITED") {
			limited++
		}
	}
	if limited < asked-requestBurst-15 || limited >= asked { // 15: what comes back while a slow machine asks
		t.Errorf("%d of %d requests at once were limited", limited, asked)
	}
	y := dialWire(t, h.socket) // another session has its own
	y.greet()
	y.send(callLine(1, "get_thing"))
	y.want(`"id":1,"result"`)
}

func TestEndOfTheDaemonAnswersOpenCalls(t *testing.T) {
	h := open(t, socketPath(t), nil)
	x, idle := dialWire(t, h.socket), dialWire(t, h.socket)
	x.greet()
	x.send(callLine(1, "slow_thing"))
	eventually(t, "the call is running", func() bool { return h.did() == "slow" })
	time.AfterFunc(100*time.Millisecond, func() { close(h.slow) })
	h.stop()
	x.want(`"id":1,"result"`, "at last")
	x.ends()
	idle.ends()
	if _, err := os.Stat(h.socket); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	if opened, closed := h.saw(SessionOpened), h.saw(SessionClosed); opened != closed {
		t.Errorf("%d sessions opened, %d closed", opened, closed)
	}
}

func TestNewRightsEndOnlyTheSessionsTheyChange(t *testing.T) {
	uid := fmt.Sprintf("uid:%d", os.Getuid())
	h := open(t, socketPath(t), mustPolicy(t, Access{Operator: []string{uid}}))
	x := dialWire(t, h.socket)
	x.greet()
	h.door.SetPolicy(mustPolicy(t, Access{Operator: []string{uid, "uid:999"}}))
	x.send(callLine(1, "get_thing"))
	x.want(`"id":1,"result"`, "for operator")
	h.door.SetPolicy(mustPolicy(t, Access{Observer: []string{uid}}))
	x.ends()
	y := dialWire(t, h.socket)
	y.greet()
	y.send(callLine(1, "get_thing"))
	y.want(`"id":1,"result"`, "for observer")
}

func TestSilentSessionLosesItsPlace(t *testing.T) {
	h := open(t, socketPath(t), nil)
	x := dialWire(t, h.socket)
	x.greet()
	x.send(callLine(1, "get_thing"))
	x.want(`"id":1`)
	s := h.door.Sessions()[0]
	if s.Client() != "wire" {
		t.Errorf("the session's client is %q, want wire", s.Client())
	}
	w := &watch{door: h.door, session: s}
	w.silent(true)
	if h.saw(SessionSilent) != 1 {
		t.Fatal("nobody was told, and so no lease ends")
	}
	w.silent(false)
	if h.saw(SessionHeard) != 1 || w.timer != nil {
		t.Fatal("a session that answers again is still counted as silent")
	}
	w.silent(true)
	w.timer.Reset(time.Millisecond) // a minute, in the field
	x.want(`"id":null`, "no answer to pings")
	x.ends()
	eventually(t, "the place is free", func() bool { return len(h.door.Sessions()) == 0 })
}

func TestPrivateTableCannotBeWeakerThanTheContract(t *testing.T) {
	for name, m := range map[string]Private{
		"a lower role":       {"gsd/approve", station.Operator, true, nop},
		"open to agents":     {"gsd/resume", station.Operator, false, nop},
		"no role":            {"gsd/x", station.NoRole, true, nop},
		"not a private name": {"tools/call", station.Observer, true, nop},
		"the bridge's name":  {"gsd/bridge", station.Observer, true, nop},
		"a bare prefix":      {"gsd/", station.Observer, true, nop},
		"no handler":         {"gsd/x", station.Observer, true, nil},
		"a role too high":    {"gsd/x", station.Supervisor + 1, true, nop},
	} {
		if _, err := NewPrivates(m); err == nil {
			t.Errorf("%s: %+v is accepted", name, m.Name)
		}
	}
	if _, err := NewPrivates(Private{"gsd/x", station.Observer, false, nop}, Private{"gsd/x", station.Observer, false, nop}); err == nil {
		t.Error("a method listed twice is accepted")
	}
}

// However an agent's caller came about, no method for people runs for it.
func TestNoPrivateMethodOfTheContractRunsForAgents(t *testing.T) {
	var methods []Private
	for name, min := range leastRoles() {
		methods = append(methods, Private{name, min, true, nop})
	}
	p, err := NewPrivates(methods...)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range p.Names() {
		for r := station.NoRole; r <= station.Supervisor; r++ {
			for _, c := range []station.Caller{{Role: r, Agent: true, UID: 1001}, {Role: r, UID: -1}} {
				if _, found, err := p.Call(t.Context(), c, name, nil); !found || err == nil {
					t.Errorf("%s runs for %+v", name, c)
				}
			}
			_, _, err := p.Call(t.Context(), station.Caller{Role: r, UID: 1000}, name, nil)
			if (err == nil) != (r >= leastRoles()[name]) {
				t.Errorf("%s for a person who is %v: %v", name, r, err)
			}
		}
	}
}

func nop(context.Context, station.Caller, json.RawMessage) (any, error) { return nil, nil }

var _ Server = (*mcp.Server)(nil)
