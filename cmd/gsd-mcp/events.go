package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gsd-mcp/internal/door"
	"gsd-mcp/internal/tools"
	"gsd-mcp/internal/unit"
)

// Bounds of events --follow.
const (
	eventsMost   = 100              // of one answer: what list_events gives at most
	eventsBehind = time.Minute      // how long before the newest an event may be dated that is told later
	eventsSeen   = 4 * eventsMost   // ids that are remembered, at least
	eventsLook   = 10 * time.Second // without news: a subscription can be lost
)

func eventsCmd() *cobra.Command {
	var follow bool
	var since, kind string
	var limit int
	cmd := clientCmd("events", "What happened lately, newest last; --follow goes on", "  gsd-mcp events --follow --kind gsd.pass\n  gsd-mcp events --since 2h --json", cobra.NoArgs,
		func(ctx context.Context, c *door.Client, cmd *cobra.Command, _ []string, asJSON bool) error {
			if limit < 1 || limit > eventsMost {
				return fail(exitUsage, fmt.Errorf("--limit %d: want 1 to %d", limit, eventsMost), "narrow it with --since and --kind")
			}
			if kind != "" && !strings.HasPrefix(kind, "gsd.") {
				kind = "gsd." + kind
			}
			from, err := sinceWhen(ctx, c, since)
			if err != nil {
				return err
			}
			if follow {
				return followEvents(ctx, c, cmd, eventsQuery{from, kind, limit}, asJSON)
			}
			r, err := callTool(ctx, c, "list_events", eventsQuery{from, kind, limit})
			if err != nil {
				return err
			}
			if asJSON {
				fmt.Fprintln(cmd.OutOrStdout(), string(r.JSON))
				return nil
			}
			page, err := eventsOf(r)
			if err != nil {
				return err
			}
			for _, e := range page.Events {
				if err := printEvent(cmd.OutOrStdout(), e, false); err != nil {
					return err
				}
			}
			if page.Truncated {
				fmt.Fprintf(cmd.ErrOrStderr(), "the newest %d of %d; narrow it with --since and --kind, or give a --limit\n", len(page.Events), page.Total)
			}
			return nil
		})
	cmd.Flags().BoolVar(&follow, "follow", false, "go on until interrupted")
	cmd.Flags().StringVar(&since, "since", "", "RFC 3339 time, or how long ago: 2h")
	cmd.Flags().StringVar(&kind, "kind", "", "beginning of the event type: pass, alarm.raised")
	cmd.Flags().IntVar(&limit, "limit", 20, "how many at most, the newest")
	return cmd
}

// eventsQuery are the arguments of list_events.
type eventsQuery struct {
	Since string `json:"since,omitempty"`
	Kind  string `json:"kind,omitempty"`
	Limit int    `json:"limit"`
}

// A shownEvent is an event as list_events has it.
type shownEvent struct {
	Time     time.Time       `json:"time"`
	Type     string          `json:"type"`
	Subject  string          `json:"subject"`
	Severity string          `json:"severity"`
	ID       string          `json:"id"`
	Data     json.RawMessage `json:"data"`
}

type eventsPage struct {
	Events    []shownEvent `json:"events"`
	Total     int          `json:"total"`
	Truncated bool         `json:"truncated"`
}

func eventsOf(r *door.ToolResult) (p eventsPage, err error) {
	if err := json.Unmarshal(r.JSON, &p); err != nil {
		return p, fail(exitFailed, fmt.Errorf("events: %w", err), "are the daemon and this program of one version?")
	}
	return p, nil
}

// sinceWhen turns --since into a time: a duration counts back from the
// station's time of day, which need not be the computer's.
func sinceWhen(ctx context.Context, c *door.Client, s string) (string, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return s, nil // the tool says what is wrong with it
	}
	r, err := callTool(ctx, c, "get_station_health", nil)
	if err != nil {
		return "", err
	}
	var h tools.HealthReport
	if err := json.Unmarshal(r.JSON, &h); err != nil {
		return "", fail(exitFailed, fmt.Errorf("health report: %w", err), "are the daemon and this program of one version?")
	}
	return h.Time.Add(-d).UTC().Format(time.RFC3339), nil
}

// followEvents prints what is there and then what comes.
func followEvents(ctx context.Context, c *door.Client, cmd *cobra.Command, q eventsQuery, asJSON bool) error {
	updates, err := c.Subscribe(ctx, "station://events/recent")
	if err != nil {
		return clientError(err)
	}
	look := time.NewTicker(eventsLook)
	defer look.Stop()
	pace := time.NewTicker(lookEvery)
	defer pace.Stop()
	seen := map[string]bool{}
	var order []string
	var newest time.Time
	for {
		r, err := callTool(ctx, c, "list_events", q)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		page, err := eventsOf(r)
		if err != nil {
			return err
		}
		known := len(order) == 0
		for _, e := range page.Events {
			if seen[e.ID] {
				known = true
				continue
			}
			seen[e.ID] = true
			order = append(order, e.ID)
			if e.Time.After(newest) {
				newest = e.Time
			}
			if err := printEvent(cmd.OutOrStdout(), e, asJSON); err != nil {
				return nil // nobody reads any more
			}
		}
		if page.Truncated && !known {
			fmt.Fprintln(cmd.ErrOrStderr(), "some events came too fast to be shown: the hub has all of them")
		}
		for len(order) > 2*eventsSeen {
			delete(seen, order[0])
			order = order[1:]
		}
		if !newest.IsZero() {
			q.Since = newest.Add(-eventsBehind).UTC().Format(time.RFC3339)
		}
		q.Limit = eventsMost
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-updates:
			if !ok {
				updates = nil
			}
		case <-look.C:
		}
		select { // more often than this nobody can read
		case <-ctx.Done():
			return nil
		case <-pace.C:
		}
	}
}

// printEvent prints one event: a line of JSON, or a line for people.
func printEvent(out io.Writer, e shownEvent, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(out).Encode(e)
	}
	kind := strings.TrimPrefix(e.Type, "gsd.")
	if i := strings.LastIndexByte(kind, '.'); i > 0 {
		kind = kind[:i]
	}
	_, err := fmt.Fprintf(out, "%s %-5s %-22s %s %s\n", e.Time.UTC().Format(time.RFC3339), unit.Printable(e.Severity, 5), unit.Printable(kind, 40), unit.Printable(e.Subject, 80), eventDetails(e.Data))
	return err
}

// eventDetails is the data of an event without its author, as "name=value".
func eventDetails(data json.RawMessage) string {
	d := json.NewDecoder(strings.NewReader(string(data)))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	var parts []string
	for d.More() { // in the order of the event
		name, err := d.Token()
		var v json.RawMessage
		if err != nil || d.Decode(&v) != nil {
			break
		}
		key, _ := name.(string)
		if key == "created_by" {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s=%s", key, strings.Trim(string(v), `"`)))
	}
	return unit.Printable(strings.Join(parts, " "), 160)
}

// announceEvents tells subscribers of station://events/recent that there is
// something new, until ctx ends.
func (h *house) announceEvents(ctx context.Context) {
	events, end := h.bus.Subscribe(eventsMost)
	defer end()
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			h.updated("events/recent")
		}
	}
}
