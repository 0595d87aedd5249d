package main

import (
	"fmt"

	"gsd-mcp/internal/health"
	"gsd-mcp/internal/hub"
)

// hubFindings says what of the hub and the outbox somebody should know. A hub
// that is away degrades the station and never stops it.
func hubFindings(s hub.Status) []health.Finding {
	var out []health.Finding
	if s.Hub.State != "connected" {
		cause := fmt.Sprintf("the hub is not connected (%s): %d critical and %d other events wait", s.Hub.State, s.Outbox.Crit.Pending, s.Outbox.Info.Pending)
		if s.Hub.Reason != "" {
			cause += "; the reason is " + s.Hub.Reason
		}
		next := s.Hub.NextStep
		if next == "" {
			next = "nothing is lost; wait, or check the network and the broker"
		}
		severity := health.Warning
		if s.Hub.State == "connecting" && s.Hub.Attempts <= 1 {
			severity = health.Info
		}
		out = append(out, health.Finding{Code: "HUB_AWAY", Severity: severity, Title: "Hub not connected", Cause: cause, NextStep: next, Since: s.Hub.Since})
	}
	for i, d := range s.Degraded {
		out = append(out, health.Finding{Code: fmt.Sprintf("HUB_DEGRADED_%d", i+1), Severity: health.Warning, Title: "Hub degraded", Cause: d, NextStep: "run: gsd-mcp call get_station_health --json, and read its hub block"})
	}
	if s.Outbox.State != "ok" {
		out = append(out, health.Finding{Code: "OUTBOX_" + s.Outbox.State, Severity: health.Unsafe, Title: "Outbox cannot write", Cause: "the state of the outbox is " + s.Outbox.State, NextStep: "free disk space or replace the card"})
	}
	return out
}
