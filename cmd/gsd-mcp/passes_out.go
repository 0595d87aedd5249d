package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/unit"
)

// write prints the result in the form that was asked for.
func (s *passSearch) write(r passes.Result) error {
	out := bufio.NewWriterSize(s.out, 1<<16)
	var err error
	switch {
	case s.flags.json:
		err = s.writeJSON(out, r)
	case s.flags.csv:
		err = s.writeCSV(out, r)
	case s.flags.ics:
		err = s.writeICS(out, r)
	default:
		s.writeTable(out, r)
	}
	if err == nil && (s.flags.plot || s.flags.svg != "") {
		err = s.draw(out, r)
	}
	if e := out.Flush(); err == nil && e != nil {
		err = fmt.Errorf("write: %w", e)
	}
	if err != nil {
		return fail(exitFailed, err, "")
	}
	return nil
}

// stationJSON is the station block of `passes --json`.
type stationJSON struct {
	Name            string       `json:"name,omitempty"`
	LatitudeDeg     float64      `json:"latitude_deg"`
	LongitudeDeg    float64      `json:"longitude_deg"`
	AltitudeM       float64      `json:"altitude_m"`
	Simulated       bool         `json:"simulated"`
	HorizonDeg      *float64     `json:"horizon_deg,omitempty"` // flat
	HorizonPoints   [][2]float64 `json:"horizon_points,omitempty"`
	MinElevationDeg float64      `json:"min_elevation_deg"`
	Refraction      bool         `json:"refraction"`
	From            time.Time    `json:"from"`
	To              time.Time    `json:"to"`
	Elements        string       `json:"elements"`
}

func (s *passSearch) writeJSON(out *bufio.Writer, r passes.Result) error {
	st := stationJSON{
		Name: s.siteName, LatitudeDeg: s.site.LatDeg, LongitudeDeg: s.site.LonDeg, AltitudeM: s.site.AltM, Simulated: s.simulated,
		MinElevationDeg: s.options.MinElevationDeg, Refraction: s.options.Refraction,
		From: s.options.From.Truncate(time.Millisecond), To: s.options.To.Truncate(time.Millisecond), Elements: unit.Printable(s.source, 200),
	}
	if el, flat := s.options.Horizon.Flat(); flat {
		st.HorizonDeg = &el
	}
	for _, p := range s.options.Horizon.Points() {
		st.HorizonPoints = append(st.HorizonPoints, [2]float64{p.AzDeg, p.ElDeg})
	}
	head, err := json.Marshal(st)
	if err != nil {
		return fmt.Errorf("write the station: %w", err)
	}
	out.WriteString(`{"station":`)
	out.Write(head)
	out.WriteString(`,"passes":[`)
	var buf []byte
	for i, p := range r.Passes {
		buf = buf[:0]
		if i > 0 {
			buf = append(buf, ',')
		}
		out.Write(p.AppendJSON(append(buf, '\n')))
	}
	if r.None == nil {
		r.None = []passes.None{}
	}
	none, err := json.Marshal(r.None)
	if err != nil {
		return fmt.Errorf("write the satellites without a pass: %w", err)
	}
	out.WriteString("],\n\"none\":")
	out.Write(none)
	out.WriteString("}\n")
	return nil
}

var csvHeading = []string{
	"pass_id", "satellite", "norad_id", "aos", "aos_azimuth_deg", "aos_elevation_deg", "tca", "tca_azimuth_deg", "max_elevation_deg",
	"los", "los_azimuth_deg", "los_elevation_deg", "duration_s", "closest", "min_range_km", "in_progress_at_start", "cut_at_end", "elements_age_days",
}

// writeCSV writes a row for every pass. Only the name can need quotes.
func (s *passSearch) writeCSV(out *bufio.Writer, r passes.Result) error {
	out.WriteString(strings.Join(csvHeading, ",") + "\n")
	var b []byte
	num := func(x float64, decimals int) {
		b = append(b, ',')
		b = strconv.AppendFloat(b, x, 'f', decimals, 64)
	}
	when := func(t time.Time) {
		b = append(b, ',')
		b = t.UTC().Round(time.Millisecond).AppendFormat(b, "2006-01-02T15:04:05.000Z")
	}
	for _, p := range r.Passes {
		b = append(b[:0], p.ID...)
		b = append(b, ',')
		b = append(b, csvField(p.Satellite)...)
		b = append(b, ',')
		b = strconv.AppendInt(b, int64(p.NoradID), 10)
		when(p.AOS.Time)
		num(p.AOS.AzDeg, 3)
		num(p.AOS.ElDeg, 3)
		when(p.TCA.Time)
		num(p.TCA.AzDeg, 3)
		num(p.MaxElDeg, 3)
		when(p.LOS.Time)
		num(p.LOS.AzDeg, 3)
		num(p.LOS.ElDeg, 3)
		num(p.Duration().Seconds(), 3)
		when(p.Closest)
		num(p.ClosestKm, 3)
		b = strconv.AppendBool(append(b, ','), p.InProgressAtStart)
		b = strconv.AppendBool(append(b, ','), p.CutAtEnd)
		num(p.ElementsAgeDays, 2)
		b = append(b, '\n')
		if _, err := out.Write(b); err != nil {
			return fmt.Errorf("write the table: %w", err)
		}
	}
	return nil
}

// csvField quotes text where RFC 4180 wants it.
func csvField(s string) string {
	if !strings.ContainsAny(s, ",\"\r\n") {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

// writeICS writes an iCalendar (RFC 5545): CRLF, lines of at most 75 octets,
// commas and semicolons escaped.
func (s *passSearch) writeICS(out io.Writer, r passes.Result) error {
	line := func(text string) {
		for len(text) > 75 {
			n := 75
			for !utf8.RuneStart(text[n]) {
				n--
			}
			fmt.Fprintf(out, "%s\r\n", text[:n])
			text = " " + text[n:]
		}
		fmt.Fprintf(out, "%s\r\n", text)
	}
	escape := strings.NewReplacer(`\`, `\\`, `;`, `\;`, `,`, `\,`, "\n", `\n`).Replace
	const stamp = "20060102T150405Z"
	line("BEGIN:VCALENDAR")
	line("VERSION:2.0")
	line("PRODID:-//gsd-mcp//passes//EN")
	line("CALSCALE:GREGORIAN")
	for _, p := range r.Passes {
		line("BEGIN:VEVENT")
		line("UID:" + p.ID + "@gsd-mcp")
		line("DTSTAMP:" + s.options.Now.Format(stamp))
		line("DTSTART:" + p.AOS.Time.Format(stamp))
		line("DTEND:" + p.LOS.Time.Add(time.Second-1).Format(stamp))
		line("SUMMARY:" + escape(fmt.Sprintf("%s, max %.0f°", p.Satellite, p.MaxElDeg)))
		line("DESCRIPTION:" + escape(fmt.Sprintf("AOS %s at azimuth %.0f°\nhighest %s at azimuth %.0f°\nLOS %s at azimuth %.0f°\nelements %.1f days old",
			p.AOS.Time.Format("15:04:05Z"), p.AOS.AzDeg, p.TCA.Time.Format("15:04:05Z"), p.TCA.AzDeg, p.LOS.Time.Format("15:04:05Z"), p.LOS.AzDeg, p.ElementsAgeDays)))
		line(fmt.Sprintf("GEO:%.6f;%.6f", s.site.LatDeg, s.site.LonDeg))
		line("END:VEVENT")
	}
	line("END:VCALENDAR")
	return nil
}

// siteText is the site for people: 51.5074°N 0.1278°W 25 m.
func siteText(s unit.Site) string {
	ns, ew := 'N', 'E'
	if s.LatDeg < 0 {
		ns = 'S'
	}
	if s.LonDeg < 0 {
		ew = 'W'
	}
	return fmt.Sprintf("%.4f°%c %.4f°%c %.0f m", math.Abs(s.LatDeg), ns, math.Abs(s.LonDeg), ew, s.AltM)
}

func horizonText(h unit.Horizon) string {
	if el, flat := h.Flat(); flat {
		return fmt.Sprintf("horizon %g°", el)
	}
	return fmt.Sprintf("horizon mask of %d points", len(h.Points()))
}

// writeTable prints rows of 78 columns.
func (s *passSearch) writeTable(out io.Writer, r passes.Result) {
	zone := "UTC"
	if s.zone != time.UTC {
		zone, _ = s.options.From.In(s.zone).Zone()
	}
	const minute = "2006-01-02 15:04"
	fmt.Fprintf(out, "Passes over %s\n%s to %s %s, %s\n\n", siteText(s.site), s.options.From.In(s.zone).Format(minute), s.options.To.In(s.zone).Format(minute), zone, horizonText(s.options.Horizon))
	if len(r.Passes) == 0 {
		fmt.Fprintln(out, "none")
		return
	}
	fmt.Fprintf(out, "%-18s %6s %-14s %-8s %-8s %4s %7s %6s\n", "SATELLITE", "NUMBER", "RISES "+zone, "HIGHEST", "SETS", "MAX", "AZIMUTH", "LASTS")
	cut := false
	for i, p := range r.Passes {
		if s.flags.limit > 0 && i == s.flags.limit {
			fmt.Fprintf(s.notes, "note: %d of %d passes shown; --limit 0 shows all\n", i, len(r.Passes))
			break
		}
		before, after := ' ', ' '
		if p.InProgressAtStart {
			before, cut = '<', true
		}
		if p.CutAtEnd {
			after, cut = '>', true
		}
		rise := p.AOS.Time.In(s.zone).Round(time.Second)
		fmt.Fprintf(out, "%s %6d %s%c%s %s %s%c%3.0f° %03.0f→%03.0f %6s\n", padName(p.Satellite, 18), p.NoradID,
			rise.Format("01-02"), before, rise.Format(time.TimeOnly), p.TCA.Time.In(s.zone).Round(time.Second).Format(time.TimeOnly),
			p.LOS.Time.In(s.zone).Round(time.Second).Format(time.TimeOnly), after, p.MaxElDeg, degrees360(p.AOS.AzDeg), degrees360(p.LOS.AzDeg), lasts(p.Duration()))
	}
	if cut {
		fmt.Fprintln(out, "\n< up already when the window begins, > still up when it ends")
	}
}

// degrees360 rounds an azimuth so that 359.7 is 0 and not 360.
func degrees360(az float64) float64 { return unit.Norm360(math.Round(az)) }

func lasts(d time.Duration) string {
	d = d.Round(time.Second)
	if d >= time.Hour {
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

// padName brings a name to a width in characters.
func padName(s string, width int) string {
	r := []rune(s)
	if len(r) > width {
		return string(r[:width-1]) + "…"
	}
	return s + strings.Repeat(" ", width-len(r))
}

// draw plots the first pass.
func (s *passSearch) draw(out io.Writer, r passes.Result) error {
	if len(r.Passes) == 0 {
		return nil
	}
	t, err := newSkyTrack(s, r.Passes[0])
	if err != nil {
		return err
	}
	if s.flags.plot {
		fmt.Fprintln(out)
		t.braille(out)
	}
	if s.flags.svg == "" {
		return nil
	}
	f, err := os.Create(s.flags.svg)
	if err != nil {
		return fmt.Errorf("--svg: %w", err)
	}
	w := bufio.NewWriter(f)
	t.svg(w)
	if err := w.Flush(); err != nil {
		f.Close()
		return fmt.Errorf("--svg: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("--svg: %w", err)
	}
	fmt.Fprintf(s.notes, "wrote %s\n", s.flags.svg)
	return nil
}
