package rotctl

import (
	"math"
	"strconv"
	"strings"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/unit"
)

// An answer is what comes back for a request: a code, and fields when the code
// is ok.
type answer struct {
	code   int
	fields []field
	silent bool // ok is not said in the default form: the fields say it
}

// A field is a value with its name in each form.
type field struct {
	label string // in the extended form
	key   string // in the default form
	value string
}

// text is the answer on the wire: one field a line, or all of it in one line
// with the separator that the client chose.
func (a answer) text(r request) string {
	report := "RPRT " + strconv.Itoa(a.code) + "\n"
	if r.sep == "" {
		if a.code != ok {
			return report
		}
		var b strings.Builder
		for _, f := range a.fields {
			b.WriteString(f.key + f.value + "\n")
		}
		if !a.silent {
			b.WriteString(report)
		}
		return b.String()
	}
	var b strings.Builder
	if r.echo != "" {
		b.WriteString(r.echo + r.sep)
	}
	if a.code == ok {
		for _, f := range a.fields {
			b.WriteString(f.label + f.value + r.sep)
		}
	}
	return b.String() + report
}

// position is what p answers. A position that is not fresh and believed is an
// error, never a number.
func position(v station.AntennaView, signed bool) answer {
	switch {
	case v.Feedback == "not_fitted":
		return answer{code: notAvailable}
	case v.Measured == nil || v.Feedback != "measured":
		return answer{code: ioError}
	}
	az := v.Measured.AzDeg
	if signed && az > 180 { // as the client counts
		az -= 360
	}
	return answer{silent: true, fields: []field{{label: "Azimuth: ", value: fixed(az, 2)}, {label: "Elevation: ", value: fixed(v.Measured.ElDeg, 2)}}}
}

// status is what s answers: the flags of Hamlib's rotator.h that are known.
func status(v station.AntennaView) answer {
	flags := ""
	if v.Moving && !arrived(v) {
		flags = "MOVING "
	}
	return answer{silent: true, fields: []field{{label: "Status flags: ", value: flags}}}
}

// arrived says that an antenna which is kept on a target has reached it.
func arrived(v station.AntennaView) bool {
	return v.Commanded != nil && v.Measured != nil && unit.Separation(*v.Commanded, *v.Measured) <= 1
}

func fixed(x float64, digits int) string {
	s := strconv.FormatFloat(x, 'f', digits, 64)
	if f, err := strconv.ParseFloat(s, 64); err == nil && f == 0 {
		return strings.TrimPrefix(s, "-")
	}
	return s
}

// limits are true directions that may be asked for: the mount's travel without
// its margins. A mount that goes all the way round takes any azimuth; the
// station chooses the winding. Of the elevation the horizon cuts off what lies
// below its lowest point.
func limits(r *safety.Rules) (azMin, azMax, elMin, elMax float64) {
	t, m := r.Travel, r.MarginDeg
	azMin, azMax = t.AzMinDeg+m+r.Offset.AzDeg, t.AzMaxDeg-m+r.Offset.AzDeg
	if azMax-azMin >= 360 {
		azMin, azMax = azMinDeg, azMaxDeg
	} else if turns := 360 * math.Floor((azMin+180)/360); turns != 0 { // begin it in -180..180
		azMin, azMax = azMin-turns, azMax-turns
	}
	elMin = max(t.ElMinDeg+m+r.Offset.ElDeg, r.Horizon.Min())
	elMax = min(t.ElMaxDeg-m+r.Offset.ElDeg, elMaxDeg)
	return azMin, azMax, elMin, elMax
}

// model is the number that dump_state gives for the rotator's model: that of
// Hamlib's own network rotator.
const model = "2"

func state(r *safety.Rules, azimuthOnly bool) answer {
	azMin, azMax, elMin, elMax := limits(r)
	kind := "AzEl"
	if azimuthOnly {
		kind = "Az"
	}
	return answer{silent: true, fields: []field{
		{"rotctld Protocol Ver: ", "", "1"}, {"Rotor Model: ", "", model},
		{"Minimum Azimuth: ", "min_az=", fixed(azMin, 6)}, {"Maximum Azimuth: ", "max_az=", fixed(azMax, 6)},
		{"Minimum Elevation: ", "min_el=", fixed(elMin, 6)}, {"Maximum Elevation: ", "max_el=", fixed(elMax, 6)},
		{"South Zero: ", "south_zero=", "0"}, {"rot_type=", "rot_type=", kind}, {"", "", "done"},
	}}
}

// caps is what 1 answers, for people and for programs that look for a line.
func caps(info string, r *safety.Rules, azimuthOnly bool) answer {
	azMin, azMax, elMin, elMax := limits(r)
	kind := "Az-El"
	if azimuthOnly {
		kind = "Azimuth"
	}
	var a answer
	for _, l := range [][2]string{
		{"Caps dump for model:\t", model}, {"Model name:\t\t", info}, {"Mfg name:\t\t", "gsd-mcp"}, {"Rot type:\t\t", kind},
		{"Min Azimuth:\t\t", fixed(azMin, 2)}, {"Max Azimuth:\t\t", fixed(azMax, 2)}, {"Min Elevation:\t\t", fixed(elMin, 2)}, {"Max Elevation:\t\t", fixed(elMax, 2)},
		{"Can set Position:\t", "Y"}, {"Can get Position:\t", "Y"}, {"Can Stop:\t\t", "Y"}, {"Can Park:\t\t", "Y"}, {"Can Reset:\t\t", "N"}, {"Can Move:\t\t", "N"},
		{"Can get Info:\t\t", "Y"}, {"Can get Status:\t\t", "Y"},
	} {
		a.fields = append(a.fields, field{value: l[0] + l[1]})
	}
	return a
}

// codeOf is the report for a result of the station. The reason of a refusal is
// in the station's events and in its audit; this protocol has no words for it.
func codeOf(r station.Result) int {
	switch {
	case r.Refusal != nil:
		return refusalCode(r.Refusal.Code)
	case r.Err != nil:
		return ioError
	}
	return ok
}

func refusalCode(c safety.Code) int {
	switch c {
	case safety.AzimuthLimit, safety.ElevationLimit, safety.ElevationBelowMask, safety.KeepOut, safety.Sun, safety.WrapUnknown, safety.WrapBudget,
		safety.SlewRate, safety.Keyhole:
		return limitExceeded
	case safety.DeviceAbsent, safety.DeviceFault, safety.Stalled, safety.FeedbackStale, safety.FeedbackSuspect:
		return ioError
	}
	return accessDenied
}
