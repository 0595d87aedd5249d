package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"gsd-mcp/internal/mcp"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/schedule"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/unit"
)

const entryOutput = `"scheduled_pass_id":{"type":"string"},"pass_id":{"type":"string"},"norad_id":{"type":"integer"},"satellite":{"type":"string","description":"Untrusted text"},"aos":{"type":"string"},"tca":{"type":"string"},"los":{"type":"string"},"max_elevation_deg":{"type":"number"},"priority":{"type":"integer"},"state":{"type":"string"},"reason_code":{"type":"string"},"reason":{"type":"string"},"since":{"type":"string","description":"Of the state"},"flags":{"type":"array","items":{"type":"string"}},"created_by":{"type":"object"},"created_at":{"type":"string"},"displaced":{"type":"array","items":{"type":"string"}},"plan":{"type":"object"},"record":{"type":"object","description":"What was measured"}`

func (k *kit) scheduleTools() []mcp.Tool {
	return []mcp.Tool{
		{
			Name: "list_scheduled_passes", Title: "List scheduled passes",
			Description:  "Lists what the station will work and what became of past bookings, with who booked and why a pass ended as it did. Use it before and after booking. Without arguments: from an hour ago, a day ahead. Do not use it to find passes: predict_passes does that.",
			InputSchema:  json.RawMessage(`{"type":"object","properties":{"from":{"type":"string","maxLength":35,"description":"RFC 3339, UTC"},"to":{"type":"string","maxLength":35,"description":"RFC 3339, UTC"},"limit":{"type":"integer","minimum":1,"maximum":100,"default":50}},"additionalProperties":false}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"scheduled_passes":{"type":"array","items":{"type":"object","properties":{` + entryOutput + `},"required":["scheduled_pass_id","pass_id","state"]}},"total":{"type":"integer"},"truncated":{"type":"boolean"}},"required":["scheduled_passes","total","truncated"]}`),
			Annotations:  reading, Visible: reader, Handle: k.listScheduled,
		},
		{
			Name: "schedule_pass", Title: "Book a pass",
			Description: "Books a pass: the station then pre-points, tracks, corrects Doppler and parks by itself, with nobody connected. Use it for every satellite to be followed. Give pass_id from predict_passes, or norad_id and aos within 5 minutes of the true one. The answer holds the motion plan's verdict. A pass through a keep-out zone, or one that overlaps another booking, is refused with alternatives. Do not use it twice for one pass.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{
				"pass_id":{"type":"string","minLength":5,"maxLength":40,"description":"As predict_passes gives it"},
				` + noradProperty + `,
				"aos":{"type":"string","maxLength":35,"description":"RFC 3339, UTC; with norad_id instead of pass_id"},
				"priority":{"type":"integer","minimum":4,"maximum":9,"default":5,"description":"4 is the most important; 1 to 3 are for people at the command line"},
				` + keyProperty + `},"additionalProperties":false,"examples":[{"pass_id":"25544-20261130T0320Z"},{"norad_id":25544,"aos":"2026-11-30T03:14:05Z","priority":4}]}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"command_id":{"type":"string"},"repeated":{"type":"boolean"},` + entryOutput + `},"required":["command_id","scheduled_pass_id","pass_id","state","plan"]}`),
			Annotations:  moving, Visible: minRole(station.Operator), Handle: k.schedulePass,
		},
		{
			Name: "cancel_scheduled_pass", Title: "Cancel a booking",
			Description: "Withdraws a booking. Use it with a scheduled_pass_id from list_scheduled_passes. Within 10 minutes of AOS only a person may cancel. Do not use it to stop the antenna: stop_station does that at once.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"scheduled_pass_id":{"type":"string","minLength":1,"maxLength":64},"reason":{"type":"string","maxLength":200,"description":"For the record"}},"required":["scheduled_pass_id"],"additionalProperties":false,
				"examples":[{"scheduled_pass_id":"sp-25544-20261130T0320Z-0a1b2c","reason":"rain"}]}`),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"command_id":{"type":"string"},"repeated":{"type":"boolean"},` + entryOutput + `},"required":["command_id","scheduled_pass_id","state"]}`),
			Annotations:  mcp.Annotations{Destructive: true, Idempotent: true}, Visible: minRole(station.Operator), Handle: k.cancelScheduled,
		},
	}
}

func parseTime(name, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, paramError("arguments/%s must be a time such as 2026-11-30T03:14:05Z, got %q", name, s)
	}
	return t, nil
}

func (k *kit) listScheduled(_ context.Context, c *mcp.Call) (*mcp.Result, error) {
	var a struct {
		From, To string
		Limit    int
	}
	if err := c.Decode(&a); err != nil {
		return nil, err
	}
	now := k.Station.Clock().Now()
	from, err := parseTime("from", a.From)
	if err != nil {
		return nil, err
	}
	to, err := parseTime("to", a.To)
	if err != nil {
		return nil, err
	}
	if from.IsZero() {
		from = now.Add(-time.Hour)
	}
	if to.IsZero() {
		to = from.Add(25 * time.Hour)
	}
	list := k.Book.List(from, to)
	total := len(list)
	list = brief(list[:min(total, a.Limit)])
	parts := make([]string, 0, len(list))
	for i, e := range list {
		if i == 10 {
			parts = append(parts, fmt.Sprintf("and %d more", total-i))
			break
		}
		parts = append(parts, fmt.Sprintf("%s satellite %d from %s, max %.0f°, %s", e.ID, e.NoradID, clock(e.AOS), e.MaxElDeg, e.State))
	}
	text := fmt.Sprintf("%d scheduled: %s.", total, strings.Join(parts, "; "))
	if total == 0 {
		text = "Nothing is scheduled in that time."
	}
	return &mcp.Result{Text: text, Structured: map[string]any{"scheduled_passes": list, "total": total, "truncated": total > len(list)}}, nil
}

func (k *kit) schedulePass(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
	var a struct {
		PassID   string `json:"pass_id"`
		Norad    int    `json:"norad_id"`
		AOS      string `json:"aos"`
		Priority int    `json:"priority"`
		Key      string `json:"idempotency_key"`
	}
	if err := c.Decode(&a); err != nil {
		return nil, err
	}
	if (a.PassID != "") == (a.Norad != 0 || a.AOS != "") || (a.Norad != 0) != (a.AOS != "") {
		return nil, paramError("arguments must hold either pass_id, or norad_id and aos")
	}
	aos, err := parseTime("aos", a.AOS)
	if err != nil {
		return nil, err
	}
	if _, _, err := passes.ParseID(a.PassID); err != nil && a.PassID != "" {
		return nil, paramError("arguments/pass_id: %v", err) // before anything is written down
	}
	return k.book(ctx, caller(c), Booking{PassID: a.PassID, NoradID: a.Norad, AOS: aos, Priority: a.Priority, Key: a.Key})
}

// brief is the start of a list of bookings that fits into one answer, without
// their plans, which station://scheduled-passes/{id} has.
func brief(list []schedule.Entry) []schedule.Entry {
	out := make([]schedule.Entry, len(list))
	for i, e := range list {
		e.Plan = nil
		out[i] = e
	}
	return out[:fit(out)]
}

// A Booking asks for a pass.
type Booking struct {
	PassID   string    `json:"pass_id,omitempty"`
	NoradID  int       `json:"norad_id,omitempty"`
	AOS      time.Time `json:"aos,omitzero"`
	Priority int       `json:"priority"`
	After    string    `json:"after,omitempty"` // an earlier booking of the pass, which is over
	Key      string    `json:"-"`
}

// ended is the newest booking of the same pass that is over already, or "".
// Asking for that pass once more is then another request and not a repeat.
func (k *kit) ended(b Booking) string {
	var newest schedule.Entry
	for _, e := range k.Book.List(time.Time{}, time.Time{}) {
		same := e.PassID == b.PassID || b.PassID == "" && e.NoradID == b.NoradID && e.AOS.Sub(b.AOS).Abs() <= passes.IDTolerance
		if same && e.State.Terminal() && !e.CreatedAt.Before(newest.CreatedAt) {
			newest = e
		}
	}
	return newest.ID
}

// book books one pass through the station's door.
func (k *kit) book(ctx context.Context, by station.Caller, b Booking) (*mcp.Result, error) {
	apply := func(ctx context.Context) (any, error) {
		p, ref, err := k.bookingPass(ctx, b)
		if err != nil {
			return nil, err
		}
		if ref != nil {
			return nil, ref
		}
		now := k.Station.Clock().Now()
		if !now.Before(p.LOS.Time) {
			return nil, safety.Refuse(safety.PassOver, "choose a later pass", "the pass ended at %s", p.LOS.Time.UTC().Format(time.RFC3339))
		}
		plan, ref, warn := k.plan(p)
		if ref != nil {
			k.alternatives(ctx, ref, p)
			return nil, ref
		}
		e, ref, err := k.Book.Add(schedule.Entry{PassID: p.ID, NoradID: p.NoradID, Satellite: p.Satellite, AOS: p.AOS.Time, TCA: p.TCA.Time, LOS: p.LOS.Time,
			MaxElDeg: round2(p.MaxElDeg), Priority: b.Priority, CreatedBy: by.Author(), Plan: planView(plan, append(warn, p.Warnings...))})
		if err != nil {
			return nil, err
		}
		if ref != nil {
			if ref.Extra["scheduled_pass_id"] == nil { // not the same pass again
				k.alternatives(ctx, ref, p)
			}
			return nil, ref
		}
		return e, nil
	}
	if b.Key == "" {
		b.After = k.ended(b)
	}
	return k.command(ctx, station.Command{Caller: by, Verb: station.VerbSchedule, Args: b, Key: b.Key, Apply: apply}, func(data json.RawMessage) string {
		var e schedule.Entry
		if json.Unmarshal(data, &e) != nil {
			return "Booked."
		}
		return fmt.Sprintf("Booked as %s: satellite %d from %s to %s, max %.0f°. The station works it by itself.", e.ID, e.NoradID, e.AOS.UTC().Format("2006-01-02 15:04:05Z"), e.LOS.UTC().Format("15:04:05Z"), e.MaxElDeg)
	})
}

// bookingPass finds the pass that a booking means.
func (k *kit) bookingPass(ctx context.Context, b Booking) (passes.Pass, *safety.Refusal, error) {
	if b.PassID != "" {
		return k.findPass(ctx, b.PassID)
	}
	found, _, ref, err := k.predict(ctx, b.NoradID, b.AOS.Add(-passSearch), b.AOS.Add(passSearch), 0)
	if err != nil || ref != nil {
		return passes.Pass{}, ref, err
	}
	best := -1
	for i, p := range found {
		if d := p.AOS.Time.Sub(b.AOS).Abs(); d <= passes.IDTolerance && (best < 0 || d < found[best].AOS.Time.Sub(b.AOS).Abs()) {
			best = i
		}
	}
	if best < 0 {
		return passes.Pass{}, safety.Refuse(safety.PassUnknown, "call predict_passes and use a pass_id from its answer", "satellite %d has no AOS within 5 minutes of %s", b.NoradID, b.AOS.UTC().Format(time.RFC3339)), nil
	}
	return found[best], nil, nil
}

// alternatives adds up to three later passes of the same satellite that could
// be booked.
func (k *kit) alternatives(ctx context.Context, ref *safety.Refusal, p passes.Pass) {
	found, _, r, err := k.predict(ctx, p.NoradID, p.LOS.Time.Add(time.Minute), p.LOS.Time.Add(48*time.Hour), 0)
	if err != nil || r != nil {
		return
	}
	alt := []map[string]any{}
	for _, q := range found {
		if len(alt) == 3 {
			break
		}
		if q.InProgressAtStart || q.CutAtEnd || !k.Book.Free(q.AOS.Time, q.LOS.Time) {
			continue
		}
		if _, ref, _ := k.plan(q); ref == nil {
			alt = append(alt, map[string]any{"pass_id": q.ID, "aos": q.AOS.Time.UTC().Format(time.RFC3339), "max_elevation_deg": round2(q.MaxElDeg)})
		}
	}
	if ref.Extra == nil {
		ref.Extra = map[string]any{}
	}
	ref.Extra["alternatives"] = alt
	if len(alt) > 0 {
		ref.Fix = fmt.Sprintf("book pass_id %s instead, or %s", alt[0]["pass_id"], ref.Fix)
	}
}

func (k *kit) cancelScheduled(ctx context.Context, c *mcp.Call) (*mcp.Result, error) {
	var a struct {
		ID     string `json:"scheduled_pass_id"`
		Reason string `json:"reason"`
	}
	if err := c.Decode(&a); err != nil {
		return nil, err
	}
	by := caller(c)
	a.Reason = unit.Printable(a.Reason, 200)
	return k.command(ctx, station.Command{Caller: by, Verb: station.VerbCancel, Args: a, Apply: func(context.Context) (any, error) {
		e, ref, err := k.Book.Cancel(a.ID, a.Reason, by.Author())
		if ref != nil {
			return nil, ref
		}
		return e, err
	}}, func(json.RawMessage) string { return fmt.Sprintf("%s is withdrawn.", a.ID) })
}
