package door

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/unit"
)

// Access is the part of [access] in station.toml that decides who may do what.
// Each list holds principals: "uid:1000", "user:alice" or "group:gsd-operate".
type Access struct {
	Observer   []string
	Operator   []string
	Supervisor []string
	Agents     []string // uids that are never people, whatever their role
	NoStop     []string // who may not stop the station (normally nobody)
	ReadOnly   bool     // the whole station only watches
	DaemonUID  int      // uid of the daemon: operator where no role is given to anyone
}

// A Policy answers which role a peer has. It never changes; a new
// configuration is a new Policy.
type Policy struct {
	roles    [station.Supervisor + 1][]principal
	agents   []principal
	noStop   []principal
	readOnly bool
}

type principal struct {
	kind string // uid, user, group
	uid  uint32
	name string
}

// accountName is what useradd and groupadd accept, wider where directories
// (dots, @domain, trailing $) need it.
var accountName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.@-]{0,62}\$?$`)

// NewPolicy reads the principals of a. Without any entry for observer, operator
// and supervisor the daemon's own uid is operator and root is supervisor; with
// entries, they alone decide.
func NewPolicy(a Access) (*Policy, error) {
	p := &Policy{readOnly: a.ReadOnly}
	for _, list := range []struct {
		key  string
		from []string
		to   *[]principal
	}{
		{"observer", a.Observer, &p.roles[station.Observer]},
		{"operator", a.Operator, &p.roles[station.Operator]},
		{"supervisor", a.Supervisor, &p.roles[station.Supervisor]},
		{"agents", a.Agents, &p.agents},
		{"no_stop", a.NoStop, &p.noStop},
	} {
		for _, s := range list.from {
			pr, err := parsePrincipal(s)
			if err != nil {
				return nil, fmt.Errorf("[access] %s: %w", list.key, err)
			}
			*list.to = append(*list.to, pr)
		}
	}
	if len(a.Observer)+len(a.Operator)+len(a.Supervisor) == 0 {
		if a.DaemonUID < 0 || int64(a.DaemonUID) > maxUID {
			return nil, fmt.Errorf("the daemon's uid %d is outside 0..%d", a.DaemonUID, int64(maxUID))
		}
		p.roles[station.Operator] = []principal{{kind: "uid", uid: uint32(a.DaemonUID)}}
		p.roles[station.Supervisor] = []principal{{kind: "uid", uid: 0}}
	}
	return p, nil
}

// maxUID is the largest uid: 4294967295 means "no change" to the kernel.
const maxUID = 4294967294

func parsePrincipal(s string) (principal, error) {
	kind, name, found := strings.Cut(s, ":")
	switch {
	case kind == "uid" && found:
		n, err := strconv.ParseUint(name, 10, 32)
		if err != nil || n > maxUID || strconv.FormatUint(n, 10) != name {
			return principal{}, fmt.Errorf("principal %q: a uid is a plain number 0..%d, as in uid:1000", unit.Printable(s, 80), int64(maxUID))
		}
		return principal{kind: kind, uid: uint32(n)}, nil
	case (kind == "user" || kind == "group") && found:
		if !accountName.MatchString(name) {
			return principal{}, fmt.Errorf("principal %q: %q is not the name of a %s", unit.Printable(s, 80), unit.Printable(name, 64), kind)
		}
		return principal{kind: kind, name: name}, nil
	}
	return principal{}, fmt.Errorf("principal %q: want uid:NUMBER, user:NAME or group:NAME", unit.Printable(s, 80))
}

func (pr principal) matches(p Peer) bool {
	switch pr.kind {
	case "uid":
		return pr.uid == p.UID
	case "user":
		return pr.name == p.User // never empty
	}
	return slices.Contains(p.Groups, pr.name)
}

func anyMatches(list []principal, p Peer) bool {
	return slices.ContainsFunc(list, func(pr principal) bool { return pr.matches(p) })
}

// Caller is the peer with the strongest role that it holds, NoRole if none, and
// marked as an agent where [access] agents says so.
func (p *Policy) Caller(peer Peer) station.Caller {
	c := station.Caller{UID: int(peer.UID), User: peer.User, Agent: anyMatches(p.agents, peer)}
	for role := station.Supervisor; role > station.NoRole; role-- {
		if anyMatches(p.roles[role], peer) {
			c.Role = role
			break
		}
	}
	return c
}

// MayStop reports whether the peer may stop the station. Everyone with a role
// may, unless [access] no_stop takes it away.
func (p *Policy) MayStop(peer Peer) bool {
	return p.Caller(peer).Role > station.NoRole && !anyMatches(p.noStop, peer)
}

// ReadOnly reports whether the whole station only watches.
func (p *Policy) ReadOnly() bool { return p.readOnly }

// Denial tells a peer without a role why nothing works and how it gets a role.
func (p *Policy) Denial(peer Peer) *safety.Refusal {
	add := "uid:" + strconv.FormatUint(uint64(peer.UID), 10)
	if accountName.MatchString(peer.User) {
		add = "user:" + peer.User
	}
	return safety.Refuse(safety.NotPermitted,
		fmt.Sprintf("ask its owner to add %q to observer (read and stop) or operator (schedule and move) under [access] in station.toml, "+
			"or to add the account to a group that is listed there, and then to reload the daemon: systemctl reload gsd-mcp", add),
		"%s has no role at this station", peer)
}
