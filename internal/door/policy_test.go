package door

import (
	"strings"
	"testing"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/station"
)

func TestStrongestRoleHeldCounts(t *testing.T) {
	p, err := NewPolicy(Access{
		Observer:   []string{"group:gsd-view", "user:agent7"},
		Operator:   []string{"uid:1001", "group:gsd-operate"},
		Supervisor: []string{"user:ada"},
		Agents:     []string{"group:gsd-copilots", "user:agent7"},
		NoStop:     []string{"uid:1002"},
		DaemonUID:  500,
	})
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		peer  Peer
		role  station.Role
		agent bool
		stop  bool
	}{
		{"listed by uid", Peer{UID: 1001}, station.Operator, false, true},
		{"listed by name", Peer{UID: 7, User: "ada"}, station.Supervisor, false, true},
		{"listed by group", Peer{UID: 8, Groups: []string{"users", "gsd-view"}}, station.Observer, false, true},
		{"two groups", Peer{UID: 8, Groups: []string{"gsd-view", "gsd-operate"}}, station.Operator, false, true},
		{"an agent with a role", Peer{UID: 9, User: "agent7"}, station.Observer, true, true},
		{"an agent with a strong role is still an agent", Peer{UID: 7, User: "ada", Groups: []string{"gsd-copilots"}}, station.Supervisor, true, true},
		{"an agent without a role", Peer{UID: 10, Groups: []string{"gsd-copilots"}}, station.NoRole, true, false},
		{"may not stop", Peer{UID: 1002, Groups: []string{"gsd-view"}}, station.Observer, false, false},
		{"a stranger", Peer{UID: 1003, User: "eve"}, station.NoRole, false, false},
		{"no name does not match a name", Peer{UID: 1004}, station.NoRole, false, false},
		{"root, where others are listed", Peer{UID: 0, User: "root"}, station.NoRole, false, false},
		{"the daemon's uid, where others are listed", Peer{UID: 500}, station.NoRole, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := p.Caller(tt.peer)
			if c.Role != tt.role || c.Agent != tt.agent || c.UID != int(tt.peer.UID) || c.User != tt.peer.User {
				t.Errorf("Caller(%v) = %+v, want role %v, agent %v", tt.peer, c, tt.role, tt.agent)
			}
			if got := p.MayStop(tt.peer); got != tt.stop {
				t.Errorf("MayStop(%v) = %v, want %v", tt.peer, got, tt.stop)
			}
		})
	}
}

func TestWithoutEntriesDaemonOperatesAndRootSupervises(t *testing.T) {
	p, err := NewPolicy(Access{DaemonUID: 500, Agents: []string{"uid:77"}})
	if err != nil {
		t.Fatal(err)
	}
	for uid, want := range map[uint32]station.Role{0: station.Supervisor, 500: station.Operator, 501: station.NoRole, 77: station.NoRole} {
		if got := p.Caller(Peer{UID: uid}).Role; got != want {
			t.Errorf("uid %d is %v, want %v", uid, got, want)
		}
	}
	root, err := NewPolicy(Access{DaemonUID: 0})
	if err != nil {
		t.Fatal(err)
	}
	if got := root.Caller(Peer{}).Role; got != station.Supervisor {
		t.Errorf("root, of a daemon that runs as root, is %v, want supervisor", got)
	}
}

func TestPrincipalSyntaxIsStrict(t *testing.T) {
	for _, bad := range []string{"", "alice", "uid:", "uid:-1", "uid:+1", "uid:01", "uid: 1", "uid:1 ", "uid:4294967295", "uid:99999999999", "uid:alice",
		"user:", "user:a b", "user:a\nb", "user:-rf", "group:", "group:ä", "gid:5", "UID:5", "user:" + strings.Repeat("a", 64), "user:a:b", "*", "user:*"} {
		_, err := NewPolicy(Access{Operator: []string{"uid:1", bad}})
		if err == nil {
			t.Errorf("operator = [%q] is accepted", bad)
			continue
		}
		if !strings.HasPrefix(err.Error(), "[access] operator: ") || strings.ContainsAny(err.Error(), "\n\r") {
			t.Errorf("operator = [%q]: error %q does not name the list, or repeats raw text", bad, err)
		}
	}
	for _, good := range []string{"uid:0", "uid:4294967294", "user:alice", "user:_svc", "user:a.b@dom.example", "user:host$", "group:gsd-operate"} {
		if _, err := NewPolicy(Access{Agents: []string{good}}); err != nil {
			t.Errorf("agents = [%q]: %v", good, err)
		}
	}
}

func TestDenialSaysWhatToAdd(t *testing.T) {
	p, err := NewPolicy(Access{Operator: []string{"user:ada"}})
	if err != nil {
		t.Fatal(err)
	}
	r := p.Denial(Peer{UID: 1003, User: "eve", Groups: []string{"eve", "plugdev"}})
	if r.Code != safety.NotPermitted || !strings.Contains(r.Why, "uid 1003 (eve; groups eve, plugdev)") || !strings.Contains(r.Fix, `"user:eve"`) || !strings.Contains(r.Fix, "[access]") {
		t.Errorf("Denial = %+v", r)
	}
	if r := p.Denial(Peer{UID: 1004}); !strings.Contains(r.Fix, `"uid:1004"`) {
		t.Errorf("Denial of a uid without a name = %+v", r)
	}
}

// A principal that is accepted matches exactly what it says.
func FuzzPrincipal(f *testing.F) {
	for _, s := range []string{"uid:0", "uid:1000", "user:alice", "group:gsd-operate", "user:", "uid:4294967295", "alice", "group:a\x00b", "uid:1e3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		pr, err := parsePrincipal(s)
		if err != nil {
			return
		}
		kind, name, _ := strings.Cut(s, ":")
		var same, other Peer
		switch kind {
		case "uid":
			same, other = Peer{UID: pr.uid}, Peer{UID: pr.uid + 1, User: name, Groups: []string{name}}
		case "user":
			same, other = Peer{UID: 5, User: name}, Peer{UID: 5, Groups: []string{name}}
		case "group":
			same, other = Peer{UID: 5, Groups: []string{name}}, Peer{UID: 5, User: name}
		default:
			t.Fatalf("%q is accepted", s)
		}
		if !pr.matches(same) || pr.matches(other) || pr.matches(Peer{UID: maxUID + 1}) {
			t.Fatalf("%q as %+v matches wrongly", s, pr)
		}
	})
}
