package door

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/station"
)

// A Private is a method of the socket that is in no list of tools and that
// nothing behind the stdio bridge can reach.
type Private struct {
	Name   string       // begins with gsd/
	Min    station.Role // least role
	Person bool         // never for agents, whatever their role
	// Handle does it. It checks what depends on the arguments or the station's
	// state; params is an object, {} when absent. A *safety.Refusal is a refusal,
	// a *ParamsError blames the arguments, any other error is the station's fault.
	Handle func(ctx context.Context, c station.Caller, params json.RawMessage) (any, error)
}

// A ParamsError says what is wrong with the arguments of a private method.
type ParamsError struct{ Text string }

// Error is the text.
func (e *ParamsError) Error() string { return e.Text }

// leastRoles are the methods of CONTRACT section 2 with the role of section 3.
// All of them are for people only. An emergency stop is in the safe direction,
// so whoever may stop may latch it.
func leastRoles() map[string]station.Role {
	return map[string]station.Role{
		"gsd/estop":   station.Observer,
		"gsd/resume":  station.Operator,
		"gsd/reset":   station.Operator, // the e-stop needs a supervisor: the handler's business
		"gsd/arm":     station.Operator,
		"gsd/key":     station.Operator,
		"gsd/approve": station.Supervisor,
		"gsd/deny":    station.Supervisor,
		"gsd/grant":   station.Supervisor,
		"gsd/revoke":  station.Supervisor,
		"gsd/mode":    station.Supervisor,
	}
}

// Privates is the table of private methods.
type Privates struct{ methods map[string]Private }

// NewPrivates checks and indexes a table. A method of the contract cannot be
// registered with less than its role, or for agents.
func NewPrivates(methods ...Private) (*Privates, error) {
	least := leastRoles()
	p := &Privates{methods: map[string]Private{}}
	for _, m := range methods {
		least, known := least[m.Name]
		_, twice := p.methods[m.Name]
		switch {
		case !strings.HasPrefix(m.Name, privatePrefix) || len(m.Name) == len(privatePrefix) || m.Name == bridgeMethod:
			return nil, fmt.Errorf("private method %q: the name must begin with %s and must not be %s", m.Name, privatePrefix, bridgeMethod)
		case twice:
			return nil, fmt.Errorf("private method %q: listed twice", m.Name)
		case m.Handle == nil:
			return nil, fmt.Errorf("private method %q: no handler", m.Name)
		case m.Min < station.Observer || m.Min > station.Supervisor:
			return nil, fmt.Errorf("private method %q: %s is not a role that can be asked for", m.Name, m.Min)
		case known && (m.Min < least || !m.Person):
			return nil, fmt.Errorf("private method %q: must be for people from %s on", m.Name, least)
		}
		p.methods[m.Name] = m
	}
	return p, nil
}

// Names lists the methods, sorted.
func (p *Privates) Names() []string { return slices.Sorted(maps.Keys(p.methods)) }

// Call runs a private method for a caller. found is false when there is none of
// that name; what the caller may not do is a refusal.
func (p *Privates) Call(ctx context.Context, c station.Caller, method string, params json.RawMessage) (result any, found bool, err error) {
	m, found := p.methods[method]
	if !found {
		return nil, false, nil
	}
	if m.Person && c.Kind() != "person" {
		return nil, true, safety.Refuse(safety.NotPermitted, "ask a person with that role to do it at the station",
			"%s is for people, and uid %d is marked as an agent in [access]", method, c.UID)
	}
	if c.Role < m.Min {
		return nil, true, safety.Refuse(safety.NotPermitted, fmt.Sprintf("ask someone who has the role, or the station's owner for it ([access] %s)", m.Min),
			"%s needs the role %s, and uid %d is %s", method, m.Min, c.UID, c.Role)
	}
	result, err = m.Handle(ctx, c, params)
	return result, true, err
}
