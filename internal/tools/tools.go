// Package tools is what a model or a person may ask of the station: the tables
// of MCP tools, resources and prompts, their schemas and their words. Each tool
// reads the station or hands it one command; none decides what is safe.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/event"
	"gsd-mcp/internal/health"
	"gsd-mcp/internal/mcp"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/schedule"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/unit"
)

// ContractVersion is the semantic version of the tool catalogue (contract,
// section 10).
const ContractVersion = "1.1.0"

// A Catalogue holds element sets.
type Catalogue interface {
	Get(noradID int) (elements.Set, bool)
	All() []elements.Set
	Find(query string, limit int) []elements.Set
}

// A Who is the caller of a session, with what the session may beside its role.
type Who struct {
	station.Caller
	MayStop  bool
	ReadOnly bool // the session gave its rights to change anything away
}

// Deps are what the tools work on.
type Deps struct {
	Station   *station.Station
	Book      *schedule.Book
	Catalogue Catalogue
	Bus       *event.Bus
	StationID string
	Name      string
	Horizon   unit.Horizon
	Findings  func() []health.Finding  // of the computer, the disk, the hub
	Hub       func() any               // health block of the hub and the outbox; nil: no hub
	Config    func() any               // redacted configuration
	Held      func(noradID int) string // a warning about elements that are held back, "" for none; may be nil
	Frequency func(noradID int) (down, up Channel)
}

// A Channel is a nominal frequency at the satellite.
type Channel struct {
	FrequencyHz int64
	Mode        string
}

// kit is Deps with what the handlers share.
type kit struct {
	Deps
	doctor *Doctor
}

// Register adds every tool, resource and prompt to a server.
func Register(s *mcp.Server, d Deps, doctor *Doctor) {
	d.Catalogue = shown{d.Catalogue}
	k := &kit{Deps: d, doctor: doctor}
	for _, t := range k.tools() {
		s.AddTool(t)
	}
	k.resources(s)
	k.prompts(s)
}

func (k *kit) tools() []mcp.Tool {
	var all []mcp.Tool
	all = append(all, k.readTools()...)
	all = append(all, k.passTools()...)
	all = append(all, k.antennaTools()...)
	all = append(all, k.scheduleTools()...)
	return all
}

// reading, moving and stopping are the annotations of the tools.
var (
	reading  = mcp.Annotations{ReadOnly: true, Idempotent: true}
	moving   = mcp.Annotations{Idempotent: true}
	stopping = mcp.Annotations{Idempotent: true}
)

const empty = `{"type":"object","properties":{},"additionalProperties":false}`

// minRole shows a tool to callers of at least a role whose session may write.
func minRole(r station.Role) func(any) bool {
	return func(caller any) bool {
		w, ok := caller.(Who)
		return ok && w.Role >= r && !w.ReadOnly
	}
}

func reader(caller any) bool {
	w, ok := caller.(Who)
	return ok && w.Role >= station.Observer
}

// caller is who made a call, as the station wants it.
func caller(c *mcp.Call) station.Caller {
	w, _ := c.Caller.(Who)
	w.Client, w.Session, w.Request, w.Trace = c.Client.Name, c.Session, c.Request, c.Trace
	return w.Caller
}

// refusal is a no of the station: a sentence, and the same for programs.
func refusal(r *safety.Refusal) *mcp.Result {
	return &mcp.Result{IsError: true, Text: r.Sentence(), Structured: r}
}

// fault is a device or a disk that did not do what it was told.
func fault(err error) *mcp.Result {
	return &mcp.Result{IsError: true,
		Text:       fmt.Sprintf("It did not work: %v. Read get_station_health for what is wrong and what to do.", err),
		Structured: map[string]any{"refused": false, "fault": err.Error(), "fix": "read get_station_health"}}
}

// Denied answers a call of a tool that the caller may not use.
func Denied(caller any, tool string) *mcp.Result {
	w, _ := caller.(Who)
	if w.ReadOnly {
		return refusal(safety.Refuse(safety.ReadOnly, "start a session without --read-only, or ask somebody who may", "this session is read-only and %s changes something", tool))
	}
	return refusal(safety.Refuse(safety.NotPermitted, "ask a person with the role, or ask for the role in [access] of station.toml", "%s needs a stronger role than %s", tool, w.Role))
}

// command hands one command to the station and turns the answer into a result.
func (k *kit) command(ctx context.Context, c station.Command, text func(data json.RawMessage) string) (*mcp.Result, error) {
	r := k.Station.Do(ctx, c)
	switch {
	case r.Refusal != nil:
		return refusal(r.Refusal), nil
	case r.Err != nil:
		var ref *safety.Refusal
		if errors.As(r.Err, &ref) {
			return refusal(ref), nil
		}
		return fault(r.Err), nil
	}
	var m map[string]any
	if err := json.Unmarshal(r.Data, &m); err != nil {
		return nil, fmt.Errorf("answer of %s: %w", c.Verb, err)
	}
	m["command_id"], m["repeated"] = r.CommandID, r.Repeated
	t := text(r.Data)
	if r.Repeated {
		t = "This is the first answer to the same request, again; nothing was done twice. " + t
	}
	return &mcp.Result{Text: t, Structured: m}, nil
}

func paramError(format string, args ...any) error {
	return &mcp.Error{Code: mcp.CodeParams, Message: fmt.Sprintf(format, args...)}
}

// site is the station in answers about passes.
func (k *kit) site() map[string]any {
	s := k.Station.Site()
	return map[string]any{"id": k.StationID, "latitude_deg": s.LatDeg, "longitude_deg": s.LonDeg, "altitude_m": s.AltM, "simulated": k.Station.Simulated()}
}

func clock(t time.Time) string { return t.UTC().Format("15:04Z") }
