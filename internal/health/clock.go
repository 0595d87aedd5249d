package health

import "gsd-mcp/internal/clock"

// ClockFindings says what of the time of day somebody should know.
func ClockFindings(t clock.Trust) []Finding {
	f := Finding{Cause: t.Why, NextStep: t.Fix}
	switch {
	case !t.Good:
		f.Code, f.Severity, f.Title = "CLOCK_UNTRUSTED", Unsafe, "clock not trusted"
	case t.OverrideBy != "":
		f.Code, f.Severity, f.Title = "CLOCK_OVERRIDDEN", Warning, "clock vouched for by a person"
		if f.NextStep == "" {
			f.NextStep = "nothing: it ends by itself"
		}
	case t.Warn:
		f.Code, f.Severity, f.Title = "CLOCK_DRIFTING", Warning, "clock not corrected for a while"
	default:
		return nil
	}
	return []Finding{f}
}
