package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"gsd-mcp/internal/config"
	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/elements/catalogue"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/unit"
)

// maxElementsFile bounds what is read as elements: the whole catalogue as OMM
// XML is 30 MB.
const maxElementsFile = 256 << 20

// searchMemory is where a search begins to collect garbage.
const searchMemory = 96 << 20

// passesFlags are the flags of `gsd-mcp passes`.
type passesFlags struct {
	config, elements, mask, svg string
	from, to                    string
	hours, horizon, minimum     float64
	lat, lon, alt               float64
	limit                       int
	json, csv, ics, plot        bool
	local, refraction           bool
}

func passesCmd() *cobra.Command {
	var f passesFlags
	cmd := &cobra.Command{
		Use:   "passes [SAT]",
		Short: "When satellites can be heard: a table, JSON, CSV, a calendar or a plot of the sky",
		Long: "When satellites can be heard, from the next 24 hours on. SAT is a catalogue number or a name or a part of\n" +
			"one; without it, the passes of every satellite in the elements come, best first.\n\n" +
			"It needs no daemon and no configuration: without --lat and --lon it takes the site of station.toml, or that\n" +
			"of the simulated station; without --elements the station's own, or the built-in snapshot.",
		Example: "  gsd-mcp passes ISS --lat 51.5 --lon -0.13 --elements amateur.txt\n" +
			"  gsd-mcp passes --min-elevation 40 --hours 6\n" +
			"  gsd-mcp passes 57166 --plot --svg next.svg",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runPasses(cmd, &f, args) },
	}
	s := cmd.Flags()
	s.StringVar(&f.config, "config", "", "configuration `FILE` (environment GSD_CONFIG, default "+config.DefaultConfig+")")
	s.StringVar(&f.elements, "elements", "", "take the elements from `FILE`: TLE, 3LE or OMM, also gzipped; - is stdin")
	s.StringVar(&f.from, "from", "", "start of the window: 2026-11-30T03:00Z, 2026-11-30 (default: now)")
	s.StringVar(&f.to, "to", "", "end of the window")
	s.Float64Var(&f.hours, "hours", 24, "length of the window in hours")
	s.Float64Var(&f.horizon, "horizon", 0, "elevation of AOS and LOS in `DEG` (default 0, or the mask of station.toml)")
	s.StringVar(&f.mask, "mask", "", "elevation of AOS and LOS by azimuth from a CSV `FILE` with the columns az_deg,min_el_deg")
	s.Float64Var(&f.minimum, "min-elevation", 0, "leave out passes that stay below `DEG`; AOS and LOS do not move")
	s.Float64Var(&f.lat, "lat", 0, "latitude of the station in `DEG`, north positive")
	s.Float64Var(&f.lon, "lon", 0, "longitude of the station in `DEG`, east positive")
	s.Float64Var(&f.alt, "alt", 0, "height of the station in `M`, above the ellipsoid")
	s.BoolVar(&f.refraction, "refraction", false, "let refraction lift the satellite over the horizon (0.5° at 0°)")
	s.IntVar(&f.limit, "limit", 50, "most rows of the table; 0 for all")
	s.BoolVar(&f.json, "json", false, "one JSON document")
	s.BoolVar(&f.csv, "csv", false, "comma separated values")
	s.BoolVar(&f.ics, "ics", false, "an iCalendar file")
	s.BoolVar(&f.plot, "plot", false, "draw the first pass in the sky, north up")
	s.StringVar(&f.svg, "svg", "", "write that drawing to `FILE`")
	s.BoolVar(&f.local, "local", false, "times of this computer's zone instead of UTC, in the table and the plot")
	cmd.MarkFlagsMutuallyExclusive("json", "csv", "ics", "plot")
	cmd.MarkFlagsMutuallyExclusive("to", "hours")
	cmd.MarkFlagsMutuallyExclusive("horizon", "mask")
	cmd.MarkFlagsRequiredTogether("lat", "lon")
	return cmd
}

// A passSearch is everything that a search needs, with where it came from.
type passSearch struct {
	flags *passesFlags
	out   io.Writer
	notes io.Writer

	site      unit.Site
	siteName  string
	simulated bool // the site is that of the simulated station
	options   passes.Options
	zone      *time.Location
	sets      []elements.Set
	source    string // of the elements
	asked     bool   // for one satellite
	missing   []passes.None
}

func runPasses(cmd *cobra.Command, f *passesFlags, args []string) error {
	s := &passSearch{flags: f, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), zone: time.UTC}
	if f.local {
		s.zone = time.Local
	}
	if err := s.findWindow(time.Now().UTC()); err != nil {
		return fail(exitUsage, err, "give --from and --to as 2026-11-30T03:00Z or 2026-11-30, in UTC")
	}
	cfg, err := s.loadConfig(cmd.Flags().Changed("lat") && f.elements != "")
	if err != nil {
		return err
	}
	if err := s.findSite(cmd, cfg); err != nil {
		return err
	}
	if err := s.findElements(cmd.InOrStdin(), cfg); err != nil {
		return err
	}
	if len(args) == 1 {
		if err := s.choose(args[0]); err != nil {
			return err
		}
	}
	// A short-lived process: collecting garbage early is work for nothing, up
	// to what a small computer can spare.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(searchMemory))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	s.options.BestFirst = !s.asked
	bar := newProgressBar(s.notes, "searching")
	result, err := passes.FindAll(cmd.Context(), s.sets, s.site, s.options, bar.show)
	bar.clear()
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return fail(exitFailed, errors.New("interrupted"), "")
		}
		return fail(exitUsage, err, "see: gsd-mcp passes --help")
	}
	result.None = append(s.missing, result.None...)
	s.sayNotes(result)
	return s.write(result)
}

// findWindow reads --from, --to and --hours.
func (s *passSearch) findWindow(now time.Time) error {
	s.options.Now = now
	from, err := parseWhen(s.flags.from, now, s.zone)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	if !(s.flags.hours > 0 && s.flags.hours <= 8784) {
		return fmt.Errorf("--hours %v is outside 0..8784", s.flags.hours)
	}
	to, err := parseWhen(s.flags.to, from.Add(time.Duration(s.flags.hours*float64(time.Hour))), s.zone)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	if !to.After(from) {
		return fmt.Errorf("the window ends at %s, not after its start %s", to.Format(time.RFC3339), from.Format(time.RFC3339))
	}
	s.options.From, s.options.To = from, to
	return nil
}

// parseWhen reads a time; without a zone it is of zone. Empty is otherwise.
func parseWhen(text string, otherwise time.Time, zone *time.Location) (time.Time, error) {
	if text == "" || text == "now" {
		return otherwise, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time", unit.Printable(text, 40))
}

// loadConfig reads station.toml where there is one; nil without, and where the
// flags say all that it could.
func (s *passSearch) loadConfig(complete bool) (*config.Config, error) {
	if complete && s.flags.config == "" {
		return nil, nil
	}
	where := config.Paths(os.Getenv, s.flags.config)
	cfg, err := config.Load(where.Config)
	switch {
	case err == nil:
		return cfg, nil
	case !where.ConfigSet && errors.Is(err, config.ErrNoConfig):
		return nil, nil
	}
	return nil, fail(exitUsage, err, "see: gsd-mcp config check")
}

// findSite takes the site and the horizon from the flags, the configuration or
// the simulated station, in this order.
func (s *passSearch) findSite(cmd *cobra.Command, cfg *config.Config) error {
	f, set := s.flags, cmd.Flags().Changed
	switch {
	case set("lat"):
		s.site = unit.Site{LatDeg: f.lat, LonDeg: f.lon, AltM: f.alt}
	case cfg != nil:
		s.site, s.siteName = cfg.Site(), cfg.Station.Name
	default:
		c := config.Simulated()
		s.site, s.siteName, s.simulated = c.Site(), c.Station.Name, true
		fmt.Fprintf(s.notes, "note: no --lat and --lon and no station.toml: using the site of the simulated station, London\n")
	}
	if set("alt") && !set("lat") {
		return fail(exitUsage, errors.New("--alt without --lat and --lon"), "give all three")
	}
	if err := s.site.Validate(); err != nil {
		return fail(exitUsage, err, "give --lat, --lon in degrees and --alt in metres")
	}
	s.options.MinElevationDeg, s.options.Refraction = f.minimum, f.refraction
	s.options.Horizon = unit.FlatHorizon(f.horizon)
	switch {
	case f.mask != "":
		h, err := readMask(f.mask)
		if err != nil {
			return fail(exitUsage, err, "a mask is a CSV file with the heading az_deg,min_el_deg and a row for every corner")
		}
		s.options.Horizon = h
	case !set("horizon") && !set("lat") && cfg != nil:
		h, err := cfg.Mask()
		if err != nil {
			return fail(exitUsage, err, "see: gsd-mcp config check")
		}
		s.options.Horizon = h
	}
	return nil
}

// readMask reads a horizon: CSV with az_deg and min_el_deg.
func readMask(path string) (unit.Horizon, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return unit.Horizon{}, fmt.Errorf("mask: %w", err)
	}
	r := csv.NewReader(bytes.NewReader(data))
	r.Comment, r.TrimLeadingSpace = '#', true
	rows, err := r.ReadAll()
	if err != nil {
		return unit.Horizon{}, fmt.Errorf("mask %s: %w", path, err)
	}
	var points []unit.AzEl
	for i, row := range rows {
		az, err1 := strconv.ParseFloat(row[0], 64)
		el, err2 := strconv.ParseFloat(row[len(row)-1], 64)
		if i == 0 && err1 != nil && err2 != nil {
			continue // the heading
		}
		if len(row) != 2 || err1 != nil || err2 != nil {
			return unit.Horizon{}, fmt.Errorf("mask %s, row %d: want two numbers, azimuth and elevation, got %q", path, i+1, unit.Printable(strings.Join(row, ","), 60))
		}
		points = append(points, unit.AzEl{AzDeg: az, ElDeg: el})
	}
	h, err := unit.NewHorizon(points)
	if err != nil {
		return unit.Horizon{}, fmt.Errorf("mask %s: %w", path, err)
	}
	return h, nil
}

// findElements reads --elements, or the station's catalogue and the files of
// its configuration, or the built-in snapshot.
func (s *passSearch) findElements(stdin io.Reader, cfg *config.Config) error {
	var files []string
	switch {
	case s.flags.elements != "":
		files = []string{s.flags.elements}
	default:
		s.sets, s.source = s.stationElements()
		if cfg != nil {
			files = cfg.Elements.Files
		}
	}
	for _, name := range files {
		data, err := readElements(name, stdin)
		if err != nil {
			return fail(exitUsage, fmt.Errorf("elements: %w", err), "give a file of TLE or OMM with --elements")
		}
		r := elements.Parse(name, data)
		s.sayProblems(r)
		s.sets = append(s.sets, r.Sets...)
		s.source = strings.TrimPrefix(s.source+", "+name, ", ")
	}
	if s.source != "" {
		if len(s.sets) == 0 {
			return fail(exitUsage, fmt.Errorf("%s: no usable orbital elements", unit.Printable(s.source, 200)), "see the problems above; TLE, 3LE and OMM (JSON, CSV, XML, KVN) are read")
		}
		s.sets = newestSets(s.sets)
		return nil
	}
	s.source = "embedded"
	s.sets = newestSets(elements.Embedded())
	newest := newestEpoch()
	if age := s.options.From.Sub(newest); age > 3*24*time.Hour {
		fmt.Fprintf(s.notes, "note: using the built-in elements of %s, %.0f days before the window: for trying out only;\n"+
			"      give --elements FILE with fresh ones, or look at their own time with --from %s\n",
			newest.Format(time.DateOnly), age.Hours()/24, newest.Add(24*time.Hour).Format(time.DateOnly))
	}
	return nil
}

// stationElements reads the catalogue of the station on this computer without
// disturbing it; none is no error.
func (s *passSearch) stationElements() ([]elements.Set, string) {
	path := filepath.Join(config.Paths(os.Getenv).StateDir, catalogue.FileName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ""
	}
	var sets []elements.Set
	if err == nil {
		sets, err = catalogue.ReadFile(data)
	}
	if err != nil {
		fmt.Fprintf(s.notes, "note: the station's own elements cannot be used: %v\n", err)
		return nil, ""
	}
	return sets, path
}

// newestSets keeps the newest set of each satellite, by catalogue number.
func newestSets(sets []elements.Set) []elements.Set {
	slices.SortStableFunc(sets, func(a, b elements.Set) int {
		return cmp.Or(cmp.Compare(a.NoradID, b.NoradID), b.Epoch.Compare(a.Epoch))
	})
	return slices.CompactFunc(sets, func(a, b elements.Set) bool { return a.NoradID == b.NoradID })
}

// readElements reads a file, stdin for "-", and unpacks gzip.
func readElements(name string, stdin io.Reader) ([]byte, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	data, err := readAtMost(in, maxElementsFile)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		return data, nil
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		data, err = readAtMost(z, maxElementsFile)
	}
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", name, err)
	}
	return data, nil
}

func readAtMost(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("more than %d MB: that is no file of elements", limit>>20)
	}
	return data, err
}

// maxShown bounds how many problems or warnings of a kind are listed.
const maxShown = 8

func (s *passSearch) sayProblems(r elements.Result) {
	for i, p := range r.Problems {
		if i == maxShown {
			fmt.Fprintf(s.notes, "... and %d more problems\n", len(r.Problems)-i)
			return
		}
		fmt.Fprintln(s.notes, p)
	}
}

// choose keeps the satellites that a person means: a number, a name, or a part
// of one.
func (s *passSearch) choose(query string) error {
	s.asked = true
	if n, err := strconv.Atoi(query); err == nil {
		if n < 1 || n > elements.MaxNoradID {
			return fail(exitUsage, fmt.Errorf("catalogue number %d is outside 1..%d", n, elements.MaxNoradID), "")
		}
		i := slices.IndexFunc(s.sets, func(e elements.Set) bool { return e.NoradID == n })
		if i < 0 {
			s.sets, s.missing = nil, []passes.None{{NoradID: n, Satellite: query, Why: passes.WhyUnknown}}
			return nil
		}
		s.sets = s.sets[i : i+1]
		return nil
	}
	var exact, part []elements.Set
	q := strings.ToLower(strings.TrimSpace(query))
	for _, e := range s.sets {
		name := strings.ToLower(e.Name)
		if name == q || strings.HasPrefix(name, q+" (") || strings.HasSuffix(name, "("+q+")") {
			exact = append(exact, e)
		}
		if strings.Contains(name, q) {
			part = append(part, e)
		}
	}
	switch {
	case q == "" || len(part) == 0:
		return fail(exitUsage, fmt.Errorf("no satellite called %q in %s (%d satellites)", unit.Printable(query, 40), unit.Printable(s.source, 80), len(s.sets)),
			"give a part of the name, or the catalogue number")
	case len(exact) > 0:
		s.sets = exact
	default:
		s.sets = part
	}
	if len(s.sets) > 1 {
		fmt.Fprintf(s.notes, "note: %d satellites match %q\n", len(s.sets), unit.Printable(query, 40))
	}
	return nil
}

// sayNotes tells people what the passes alone do not say. JSON has all of it
// in its document.
func (s *passSearch) sayNotes(r passes.Result) {
	if s.flags.json {
		return
	}
	old := map[int]elements.Trust{}
	for _, p := range r.Passes {
		for _, e := range s.sets {
			if e.NoradID == p.NoradID {
				if t := e.Trust(p.TCA.Time); t.Why != "" {
					old[e.NoradID] = t
				}
				break
			}
		}
		if len(s.sets) > maxShown && len(old) > 0 {
			break // many satellites are summed up below
		}
	}
	if len(s.sets) > maxShown {
		old = map[int]elements.Trust{}
		tooOld := 0
		for _, e := range s.sets {
			if t := e.Trust(s.options.To); !t.OK() {
				tooOld++
			}
		}
		if tooOld > 0 {
			fmt.Fprintf(s.notes, "warning: the elements of %d of %d satellites are too old to point with at the end of the window\n", tooOld, len(s.sets))
		}
	}
	for _, e := range s.sets {
		if t, ok := old[e.NoradID]; ok {
			fmt.Fprintf(s.notes, "warning: %s: %s\n", e.Label(), t.Why)
		}
	}
	if s.options.To.Before(s.options.Now) {
		fmt.Fprintf(s.notes, "warning: the window is in the past\n")
	}
	if s.asked || len(r.None) <= maxShown {
		for _, n := range r.None {
			fmt.Fprintf(s.notes, "no pass of %s (%d): %s\n", n.Satellite, n.NoradID, n.Why)
		}
		return
	}
	counts := map[passes.Why]int{}
	for _, n := range r.None {
		counts[n.Why]++
	}
	var parts []string
	for _, w := range []passes.Why{passes.WhyNoPass, passes.WhyNeverRises, passes.WhyBelowMinimum, passes.WhyDecayed, passes.WhyPropagation} {
		if counts[w] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[w], w))
		}
	}
	fmt.Fprintf(s.notes, "no pass of %d satellites: %s\n", len(r.None), strings.Join(parts, ", "))
}

// barAfter is how long a search takes before a bar is worth looking at.
const barAfter = time.Second

// A progressBar shows how far a long search has come, on a terminal only.
type progressBar struct {
	out   io.Writer
	what  string
	start time.Time
	shown bool
	last  time.Time
}

func newProgressBar(out io.Writer, what string) *progressBar {
	b := &progressBar{what: what, start: time.Now()}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		b.out = f
	}
	return b
}

func (b *progressBar) show(done, total int) {
	now := time.Now()
	if b.out == nil || now.Sub(b.start) < barAfter || now.Sub(b.last) < 100*time.Millisecond {
		return
	}
	b.last, b.shown = now, true
	const width = 30
	n := width * done / total
	fmt.Fprintf(b.out, "\r%s %s%s %d of %d", b.what, strings.Repeat("█", n), strings.Repeat("░", width-n), done, total)
}

func (b *progressBar) clear() {
	if b.shown {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}
