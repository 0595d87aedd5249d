package passes

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gsd-mcp/internal/unit"
)

// An Event is an instant of a pass and where the satellite stands then.
type Event struct {
	Time    time.Time
	AzDeg   float64 // 0 to 360, true north
	ElDeg   float64 // geometric
	RangeKm float64
}

// MarshalJSON writes the event as `passes --json` does: UTC to the millisecond.
func (e Event) MarshalJSON() ([]byte, error) { return e.appendJSON(nil), nil }

// UnmarshalJSON reads what MarshalJSON wrote.
func (e *Event) UnmarshalJSON(data []byte) error {
	var in struct {
		Time  time.Time `json:"time"`
		Az    float64   `json:"azimuth_deg"`
		El    float64   `json:"elevation_deg"`
		Range float64   `json:"range_km"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*e = Event{in.Time, in.Az, in.El, in.Range}
	return nil
}

func (e Event) appendJSON(b []byte) []byte {
	b = append(b, `{"time":"`...)
	b = appendTime(b, e.Time)
	b = append(b, `","azimuth_deg":`...)
	b = appendFloat(b, e.AzDeg, 3)
	b = append(b, `,"elevation_deg":`...)
	b = appendFloat(b, e.ElDeg, 3)
	b = append(b, `,"range_km":`...)
	b = appendFloat(b, e.RangeKm, 3)
	return append(b, '}')
}

// appendFloat writes x rounded to a number of decimals, without their zeros.
func appendFloat(b []byte, x float64, decimals int) []byte {
	n := len(b)
	b = strconv.AppendFloat(b, x, 'f', decimals, 64)
	for len(b) > n && b[len(b)-1] == '0' {
		b = b[:len(b)-1]
	}
	if b[len(b)-1] == '.' {
		b = b[:len(b)-1]
	}
	if string(b[n:]) == "-0" {
		b = append(b[:n], '0')
	}
	return b
}

// appendTime writes UTC to the millisecond, rounded.
func appendTime(b []byte, t time.Time) []byte {
	return t.UTC().Round(time.Millisecond).AppendFormat(b, "2006-01-02T15:04:05.000Z")
}

// A Pass is one stay of a satellite above the horizon of a site. A stay that
// began before the window or goes on after it is cut there, and marked.
type Pass struct {
	ID        string // see PassID
	NoradID   int
	Satellite string // untrusted text, printable

	AOS Event // rises through the horizon, or the start of the window
	TCA Event // highest, within the window
	LOS Event // sets through the horizon, or the end of the window

	Closest   time.Time // least range within the window: no Doppler; another time than TCA for an eccentric orbit
	MaxElDeg  float64   // elevation at TCA
	ClosestKm float64   // range at Closest

	InProgressAtStart bool // up already when the window began: AOS is no crossing
	CutAtEnd          bool // still up when the window ended: LOS is no crossing

	ElementsAgeDays float64  // at TCA
	Warnings        []string // sentences: old elements, a window in the past, decay
}

// Duration of the pass within the window.
func (p Pass) Duration() time.Duration { return p.LOS.Time.Sub(p.AOS.Time) }

// MarshalJSON writes the pass as `passes --json` does.
func (p Pass) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil), nil }

// AppendJSON appends the pass as one JSON object.
func (p Pass) AppendJSON(b []byte) []byte {
	b = append(b, `{"pass_id":"`...)
	b = append(b, p.ID...)
	b = append(b, `","satellite":`...)
	b = appendString(b, p.Satellite)
	b = append(b, `,"norad_id":`...)
	b = strconv.AppendInt(b, int64(p.NoradID), 10)
	b = append(b, `,"elements_age_days":`...)
	b = appendFloat(b, p.ElementsAgeDays, 2)
	b = append(b, `,"aos":`...)
	b = p.AOS.appendJSON(b)
	b = append(b, `,"tca":`...)
	b = p.TCA.appendJSON(b)
	b = append(b, `,"los":`...)
	b = p.LOS.appendJSON(b)
	b = append(b, `,"max_elevation_deg":`...)
	b = appendFloat(b, p.MaxElDeg, 3)
	b = append(b, `,"duration_s":`...)
	b = appendFloat(b, p.Duration().Seconds(), 3)
	b = append(b, `,"closest_time":"`...)
	b = appendTime(b, p.Closest)
	b = append(b, `","closest_range_km":`...)
	b = appendFloat(b, p.ClosestKm, 3)
	b = append(b, `,"in_progress_at_start":`...)
	b = strconv.AppendBool(b, p.InProgressAtStart)
	b = append(b, `,"cut_at_end":`...)
	b = strconv.AppendBool(b, p.CutAtEnd)
	b = append(b, `,"warnings":[`...)
	for i, w := range p.Warnings {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, w)
	}
	return append(b, `]}`...)
}

func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			q, _ := json.Marshal(s) // a string always marshals
			return append(b, q...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (p *Pass) UnmarshalJSON(data []byte) error {
	var in struct {
		ID        string    `json:"pass_id"`
		Satellite string    `json:"satellite"`
		NoradID   int       `json:"norad_id"`
		Age       float64   `json:"elements_age_days"`
		AOS       Event     `json:"aos"`
		TCA       Event     `json:"tca"`
		LOS       Event     `json:"los"`
		MaxElDeg  float64   `json:"max_elevation_deg"`
		Closest   time.Time `json:"closest_time"`
		ClosestKm float64   `json:"closest_range_km"`
		Start     bool      `json:"in_progress_at_start"`
		End       bool      `json:"cut_at_end"`
		Warnings  []string  `json:"warnings"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*p = Pass{
		ID: in.ID, Satellite: in.Satellite, NoradID: in.NoradID, ElementsAgeDays: in.Age,
		AOS: in.AOS, TCA: in.TCA, LOS: in.LOS, MaxElDeg: in.MaxElDeg, Closest: in.Closest, ClosestKm: in.ClosestKm,
		InProgressAtStart: in.Start, CutAtEnd: in.End, Warnings: in.Warnings,
	}
	return nil
}

// idLayout is the minute of TCA in a pass id.
const idLayout = "20060102T1504Z"

// IDTolerance is how far the TCA of a pass may lie from that of a pass id that
// names it: other elements move a pass by seconds, not by minutes.
const IDTolerance = 5 * time.Minute

// PassID names a pass by catalogue number and TCA to the minute:
// 25544-20261130T0320Z. For a pass that the window cuts, it is the TCA of the
// whole pass, so the name does not change while it runs.
func PassID(noradID int, tca time.Time) string {
	return string(appendID(make([]byte, 0, 24), noradID, tca))
}

func appendID(b []byte, noradID int, tca time.Time) []byte {
	b = strconv.AppendInt(b, int64(noradID), 10)
	b = append(b, '-')
	return tca.UTC().AppendFormat(b, idLayout)
}

// ParseID reads a pass id.
func ParseID(id string) (noradID int, tca time.Time, err error) {
	number, minute, ok := strings.Cut(id, "-")
	if ok && len(number) <= 9 {
		noradID, err = strconv.Atoi(number)
		if err == nil && noradID > 0 && number[0] != '+' {
			if tca, err = time.Parse(idLayout, minute); err == nil {
				return noradID, tca, nil
			}
		}
	}
	return 0, time.Time{}, fmt.Errorf("pass id %q: want a catalogue number and the minute of the highest elevation, like 25544-20261130T0320Z", clip(id))
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}

// Match finds the pass that an id names: the one of that satellite whose TCA is
// nearest to the id's, within IDTolerance. An id keeps its pass when new
// elements move it a little.
func Match(id string, found []Pass) (Pass, bool) {
	norad, tca, err := ParseID(id)
	if err != nil {
		return Pass{}, false
	}
	best, gap := -1, IDTolerance+time.Minute/2
	for i, p := range found {
		if p.NoradID != norad {
			continue
		}
		if p.ID == id {
			return p, true
		}
		_, at, err := ParseID(p.ID)
		if err != nil {
			continue
		}
		if d := at.Sub(tca).Abs(); d < gap {
			best, gap = i, d
		}
	}
	if best < 0 {
		return Pass{}, false
	}
	return found[best], true
}

// Why says why there is no pass, in words that programs may compare.
type Why string

// Reasons for an empty answer.
const (
	WhyFound        Why = ""                       // there are passes
	WhyNeverRises   Why = "never rises"            // the orbit stays below the horizon of this site
	WhyNoPass       Why = "no pass in this window" // it rises, but not now
	WhyBelowMinimum Why = "below min elevation"    // passes, but none high enough
	WhyDecayed      Why = "decayed"                // no longer in orbit
	WhyPropagation  Why = "cannot be propagated"   // SGP4 fails with these elements
	WhyUnknown      Why = "not in the elements"    // no element set for it
)

// Options of a search.
type Options struct {
	From, To time.Time
	// Horizon is the elevation of AOS and LOS, flat or by azimuth.
	Horizon unit.Horizon
	// MinElevationDeg is the least highest elevation of a pass; it does not
	// move AOS and LOS. 0 lets every pass through.
	MinElevationDeg float64
	// Refraction lifts every elevation that is compared with the horizon by
	// Refraction; reported elevations stay geometric.
	Refraction bool
	// Warn, when set, gives a sentence to add to the warnings of a satellite's
	// passes, "" for none: that its newest elements are held back, say. It may
	// be called from several goroutines.
	Warn func(noradID int) string
	// BestFirst orders the answer of FindAll by highest elevation.
	BestFirst bool
	// Now, when set, gives a warning with every pass that is over.
	Now time.Time
}

// maxWindow bounds one search: 40 days of one satellite are some 10 ms.
const maxWindow = 366 * 24 * time.Hour

func (o Options) validate() error {
	switch d := o.To.Sub(o.From); {
	case !(d > 0):
		return fmt.Errorf("the window ends at %s, not after its start %s", o.To.Format(time.RFC3339), o.From.Format(time.RFC3339))
	case d > maxWindow:
		return fmt.Errorf("the window of %.0f days is over %.0f: ask for a shorter one", d.Hours()/24, maxWindow.Hours()/24)
	case !(o.MinElevationDeg >= 0 && o.MinElevationDeg <= 90):
		return fmt.Errorf("the least highest elevation %v° is outside 0..90", o.MinElevationDeg)
	}
	if h := o.Horizon.Min(); !(h >= -90 && h < 90) || math.IsNaN(h) {
		return fmt.Errorf("horizon %v° is outside -90..90", h)
	}
	return nil
}
