package station

import "fmt"

// A Role is what a caller may do. Each role includes the ones before it.
type Role int

// Roles, weakest first.
const (
	NoRole     Role = iota // may do nothing but learn how to get a role
	Observer               // reads, dry runs, stop
	Operator               // + schedule, point, park, tune, resume
	Supervisor             // + approve, deny, grant, modes, overrides
)

var roleNames = [...]string{"none", "observer", "operator", "supervisor"}

// String is the role's name in configuration and messages.
func (r Role) String() string {
	if r < NoRole || r > Supervisor {
		return fmt.Sprintf("role(%d)", int(r))
	}
	return roleNames[r]
}

// ParseRole reads a role's name.
func ParseRole(s string) (Role, error) {
	for i, n := range roleNames {
		if n == s {
			return Role(i), nil
		}
	}
	return NoRole, fmt.Errorf("role %q: want observer, operator or supervisor", s)
}

// A Caller is who asks. Role, UID, User and Agent come from the kernel and the
// configuration; Client is what the program says of itself and is never a
// reason to allow anything.
type Caller struct {
	Role    Role
	Agent   bool   // one of [access] agents: never a person, can never resume, approve, arm, key or reset
	UID     int    // -1 for the station's own scheduler
	User    string // the account's name
	Client  string // self-declared program name, printable
	Session string // id of the connection
	Request string // JSON-RPC id of the request, as sent
	Trace   string // W3C traceparent, or ""
}

// Kind says what sort of author this is: agent, person or rule.
func (c Caller) Kind() string {
	switch {
	case c.UID < 0:
		return "rule"
	case c.Agent:
		return "agent"
	}
	return "person"
}
