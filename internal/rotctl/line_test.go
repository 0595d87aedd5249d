package rotctl

import (
	"math"
	"strings"
	"testing"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/unit"
)

func TestNumbersArePlainDecimals(t *testing.T) {
	tests := []struct {
		args string
		want unit.AzEl
		good bool
	}{
		{"10 20", unit.AzEl{AzDeg: 10, ElDeg: 20}, true},
		{"12.34 56.78", unit.AzEl{AzDeg: 12.34, ElDeg: 56.78}, true},
		{"+12.34  -5", unit.AzEl{AzDeg: 12.34, ElDeg: -5}, true},
		{"359.899994 45.500000", unit.AzEl{AzDeg: 359.899994, ElDeg: 45.5}, true},
		{"-180 0", unit.AzEl{AzDeg: -180}, true},
		{"450 180", unit.AzEl{AzDeg: 450, ElDeg: 180}, true},
		{"12,34 56,78", unit.AzEl{AzDeg: 12.34, ElDeg: 56.78}, true},
		{"-10,5 20", unit.AzEl{AzDeg: -10.5, ElDeg: 20}, true},
		{args: "12,34 56.78"},
		{args: "12.34,56.78"},
		{args: "10,20"},
		{args: "10, 20"},
		{args: "1.234,5 20"},
		{args: "1,2,3 20"},
		{args: ".5 20"},
		{args: "5. 20"},
		{args: "nan 20"},
		{args: "10 inf"},
		{args: "0x10 5"},
		{args: "1e2 5"},
		{args: "450.1 5"},
		{args: "-180.1 5"},
		{args: "10 180.1"},
		{args: "10 -90.1"},
		{args: "99999 5"},
		{args: "--5 5"},
		{args: "- 5"},
		{args: "10"},
		{args: "10 20 30"},
		{args: "１０ 20"},
	}
	for _, tt := range tests {
		r := parse([]byte("P " + tt.args))
		if good := r.verb == setPos; good != tt.good || good && r.at != tt.want || !good && r.code != invalid {
			t.Errorf("P %s: verb %d, code %d, %v; want %v, %v", tt.args, r.verb, r.code, r.at, tt.good, tt.want)
		}
	}
}

func TestCommandsHaveTheirNames(t *testing.T) {
	for _, c := range commands {
		args := strings.Repeat(" 1", c.args)
		lines := []string{`\` + c.long + args, c.long + args, "+" + `\` + c.long + args, ";" + c.long + args + "\r", "  " + c.long + args + "  "}
		if c.short != 0 {
			lines = append(lines, string(c.short)+args, "|"+string(c.short)+args)
		}
		for _, l := range lines {
			if r := parse([]byte(l)); r.verb != c.verb {
				t.Errorf("%q is verb %d, want %d of %s", l, r.verb, c.verb, c.long)
			}
		}
		if r := parse([]byte(`\` + string(c.short) + args)); c.short != 0 && r.verb != wrong {
			t.Errorf(`\%c is verb %d: a short command takes no backslash`, c.short, r.verb)
		}
	}
}

func TestLimitsAreTheStations(t *testing.T) {
	tests := []struct {
		name                       string
		rules                      safety.Rules
		azMin, azMax, elMin, elMax float64
	}{
		{"a turn and a quarter", safety.Rules{Travel: safety.Travel{AzMaxDeg: 450, ElMaxDeg: 180}, MarginDeg: 2, Horizon: unit.FlatHorizon(5)}, -180, 450, 5, 178},
		{"less than a turn", safety.Rules{Travel: safety.Travel{AzMaxDeg: 360, ElMaxDeg: 90}, MarginDeg: 2, Horizon: unit.FlatHorizon(0)}, 2, 358, 2, 88},
		{"south centre", safety.Rules{Travel: safety.Travel{AzMaxDeg: 360, ElMaxDeg: 90}, MarginDeg: 5, Offset: unit.AzEl{AzDeg: 180, ElDeg: -1}, Horizon: unit.FlatHorizon(0)}, -175, 175, 4, 84},
	}
	for _, tt := range tests {
		azMin, azMax, elMin, elMax := limits(&tt.rules)
		if azMin != tt.azMin || azMax != tt.azMax || elMin != tt.elMin || elMax != tt.elMax {
			t.Errorf("%s: %v..%v, %v..%v; want %v..%v, %v..%v", tt.name, azMin, azMax, elMin, elMax, tt.azMin, tt.azMax, tt.elMin, tt.elMax)
		}
	}
}

func TestAPositionThatIsNotBelievedIsNoPosition(t *testing.T) {
	at := &unit.AzEl{AzDeg: 10, ElDeg: 20}
	for feedback, want := range map[string]string{"measured": "10.00\n20.00\n", "stale": "RPRT -6\n", "suspect": "RPRT -6\n", "none": "RPRT -6\n", "not_fitted": "RPRT -11\n"} {
		if got := position(station.AntennaView{Feedback: feedback, Measured: at}, false).text(request{}); got != want {
			t.Errorf("%s: p is answered %q, want %q", feedback, got, want)
		}
	}
}

func TestRefusalsHaveTheirReports(t *testing.T) {
	for code, want := range map[safety.Code]int{
		safety.KeepOut: limitExceeded, safety.AzimuthLimit: limitExceeded, safety.ElevationLimit: limitExceeded, safety.ElevationBelowMask: limitExceeded,
		safety.Sun: limitExceeded, safety.WrapUnknown: limitExceeded, safety.LeaseHeld: accessDenied, safety.Standby: accessDenied, safety.HeldAfterStop: accessDenied,
		safety.NotPermitted: accessDenied, safety.ReadOnly: accessDenied, safety.Wind: accessDenied, safety.EStop: accessDenied, safety.RateLimited: accessDenied,
		safety.DeviceAbsent: ioError, safety.DeviceFault: ioError, safety.Stalled: ioError, safety.FeedbackSuspect: ioError,
	} {
		if got := codeOf(station.Result{Refusal: &safety.Refusal{Code: code}}); got != want {
			t.Errorf("%s is RPRT %d, want %d", code, got, want)
		}
	}
}

// Whatever comes over the wire, a line either is a command whose target is a
// direction, or has a report; its answer is lines of printable text.
func FuzzLine(f *testing.F) {
	for _, s := range []string{"p", "P 10 20", "+P 10,5 20,5", `;\dump_state`, "POST / HTTP/1.1", "P nan inf", "\x16\x03\x01", "# P 1 2", "w AZ10", `\\p`, "+", "P\x00 1 2", "_", "|_"} {
		f.Add([]byte(s))
	}
	rules := newStand().rule
	f.Fuzz(func(t *testing.T, line []byte) {
		r := parse(line)
		if r.verb == setPos {
			d := r.at
			if !d.Finite() || math.Abs(d.AzDeg) > azMaxDeg || d.ElDeg < elMinDeg || d.ElDeg > elMaxDeg {
				t.Fatalf("%q is a move to %v", line, d)
			}
		}
		if (r.verb == wrong || r.verb == refused) && r.code >= 0 {
			t.Fatalf("%q has the report %d", line, r.code)
		}
		if r.verb == foreign {
			return
		}
		for _, a := range []answer{{code: r.code}, state(&rules, false), caps("x", &rules, true)} {
			for _, c := range a.text(r) {
				if c != '\n' && c != '\t' && (c < ' ' || c == 0x7f) {
					t.Fatalf("%q is answered with the control character %#x", line, c)
				}
			}
		}
	})
}
