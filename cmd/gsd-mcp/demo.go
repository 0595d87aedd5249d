package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/config"
	"gsd-mcp/internal/door"
	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/event"
	"gsd-mcp/internal/hub"
	"gsd-mcp/internal/mcp"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/schedule"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/tools"
	"gsd-mcp/internal/track"
	"gsd-mcp/internal/unit"
)

// Bounds of the demo.
const (
	demoRate     = 20                     // station seconds per second
	demoLead     = 3 * time.Minute        // station time before AOS at which the demo begins
	demoLongest  = 9 * time.Minute        // of a pass: 27 s at 20×
	demoPoll     = 200 * time.Millisecond // real: between two looks at the antenna
	demoDeadline = 3 * time.Minute        // real: then something is wrong
)

func demoCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "The main job without hardware: a simulated station works a real pass at 20 times the speed",
		Long: "A simulated station in this process predicts, books, pre-points and tracks a real pass at 20 times the speed,\n" +
			"corrects Doppler, refuses an unsafe move, and publishes to a broker inside the process. It ends by itself within\n" +
			"a minute, needs no network and no hardware, and leaves no files behind.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			out := cmd.OutOrStdout()
			d := &demo{out: out, tty: !asJSON && onTerminal(os.Stdout)}
			if asJSON {
				d.out = io.Discard
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), demoDeadline)
			defer cancel()
			err := d.run(ctx)
			if asJSON {
				if jerr := json.NewEncoder(out).Encode(d.doc); jerr != nil && err == nil {
					err = jerr
				}
			}
			if err != nil {
				return fail(exitFailed, err, "run it again with --json and look at where it ends")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON document on stdout at the end")
	return cmd
}

// A demoDoc is what `demo --json` prints.
type demoDoc struct {
	Station   string          `json:"station"`
	Simulated bool            `json:"simulated"`
	Health    json.RawMessage `json:"health"`
	Passes    []passes.Pass   `json:"passes"`
	Booked    json.RawMessage `json:"booked"`
	Refused   json.RawMessage `json:"refused"`
	Track     []demoSample    `json:"track"`
	Events    []demoEvent     `json:"events"`
	Missing   int             `json:"events_missing"`
	Result    schedule.Entry  `json:"result"`
	State     schedule.State  `json:"state"`
}

type demoSample struct {
	Time      time.Time `json:"time"`
	State     string    `json:"state"`
	AzDeg     float64   `json:"azimuth_deg"`
	ElDeg     float64   `json:"elevation_deg"`
	RangeKm   float64   `json:"range_km"`
	DopplerHz int64     `json:"doppler_hz"`
	ErrorDeg  *float64  `json:"pointing_error_deg"`
	RadioHz   int64     `json:"radio_hz"`
	Progress  float64   `json:"progress"`
}

type demoEvent struct {
	Topic    string    `json:"topic"`
	Type     string    `json:"type"`
	ID       string    `json:"id"`
	Sequence string    `json:"sequence"`
	Source   string    `json:"source"`
	Time     time.Time `json:"time"`
}

type demo struct {
	out  io.Writer
	tty  bool
	doc  demoDoc
	h    *house
	c    *door.Client
	mu   sync.Mutex
	hub  []demoEvent
	line int // length of the progress line on the terminal
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

func (d *demo) head(n int, text string) { d.say("\n%d. %s", n, text) }

// run does the whole job.
func (d *demo) run(ctx context.Context) error {
	cfg := config.Simulated()
	pass, err := demoPass(ctx, cfg)
	if err != nil {
		return err
	}
	broker, err := sim.NewBroker(sim.BrokerOptions{OnMessage: d.received})
	if err != nil {
		return err
	}
	defer broker.Close()
	clk, err := clock.Simulated(pass.AOS.Time.Add(-demoLead).Truncate(time.Second), time.Now(), demoRate)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gsd-mcp-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ring := newLogRing(os.Stderr)
	defer ring.Close()
	d.h, err = openHouse(houseOptions{Config: cfg, StateDir: dir, Log: newLogger(ring, "error", "text"), Clock: clk, Hub: &hub.Config{Broker: broker.URL(), Dial: broker.Dial}})
	if err != nil {
		return err
	}
	defer d.h.close()
	hctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); d.h.Run(hctx) }()
	end := func() { stop(); <-done }
	err = d.work(ctx, pass)
	end()
	if err != nil {
		return err
	}
	return d.summary()
}

// work is the job itself, through the station's own MCP server: what the demo
// does, any client can do.
func (d *demo) work(ctx context.Context, pass passes.Pass) error {
	ours, theirs := net.Pipe()
	sctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan struct{})
	go func() {
		defer close(served)
		w := simulatedCaller(stdioFlags{})
		d.h.server.Serve(sctx, theirs, theirs, mcp.SessionOptions{Caller: w, ID: "demo", Denied: func(c any, tool string) *mcp.Result { return tools.Denied(c, tool) }})
	}()
	d.c = door.NewClient(ours, "gsd-mcp demo "+version)
	defer func() { d.c.Close(); <-served }()

	if err := d.introduce(ctx); err != nil {
		return err
	}
	if err := d.predict(ctx, pass); err != nil {
		return err
	}
	id, err := d.book(ctx, pass)
	if err != nil {
		return err
	}
	if err := d.unsafe(ctx); err != nil {
		return err
	}
	return d.follow(ctx, id)
}

// introduce says what the station is, once its devices have answered.
func (d *demo) introduce(ctx context.Context) error {
	if err := d.until(ctx, "the simulated devices", func() (bool, error) {
		a, r := d.h.station.Antenna(), d.h.station.Radio()
		return a.Measured != nil && !a.Moving && r.Status != nil, nil
	}); err != nil {
		return err
	}
	r, err := callTool(ctx, d.c, "get_station_health", nil)
	if err != nil {
		return err
	}
	d.doc.Health, d.doc.Station, d.doc.Simulated = r.JSON, d.h.cfg.Station.ID, d.h.station.Simulated()
	s, l := d.h.station.Site(), d.h.cfg.Rotator.Limits
	d.say("gsd-mcp %s: %s (%s). Everything here is simulated; the orbits are real.", version, d.h.cfg.Station.Name, d.h.cfg.Station.ID)
	d.head(1, "The station")
	d.say("   site      %.4f° N, %.4f° E, %.0f m; station time %s, running %d times as fast", s.LatDeg, s.LonDeg, s.AltM, d.h.clk.Now().Format("2006-01-02 15:04:05Z"), demoRate)
	d.say("   rotator   %s on a pseudo-terminal, %.0f°..%.0f° by %.0f°..%.0f°, %.1f and %.1f °/s", d.h.cfg.Rotator.Driver, l.AzimuthMinDeg, l.AzimuthMaxDeg, l.ElevationMinDeg, l.ElevationMaxDeg, l.AzimuthSpeedDps, l.ElevationSpeedDps)
	d.say("   radio     %s on a pseudo-terminal, receiver only", d.h.station.RadioModel())
	for _, z := range d.h.cfg.KeepOut {
		d.say("   keep-out  %s: azimuth %.0f°..%.0f°, elevation %.0f°..%.0f° (%s)", z.Name, z.AzimuthDeg[0], z.AzimuthDeg[1], z.ElevationDeg[0], z.ElevationDeg[1], z.Reason)
	}
	d.say("   hub       an MQTT broker inside this process")
	return nil
}

func (d *demo) predict(ctx context.Context, pass passes.Pass) error {
	r, err := callTool(ctx, d.c, "predict_passes", map[string]any{"norad_id": pass.NoradID, "hours": 24})
	if err != nil {
		return err
	}
	var doc struct{ Passes []passes.Pass }
	if err := json.Unmarshal(r.JSON, &doc); err != nil {
		return err
	}
	d.doc.Passes = doc.Passes
	d.head(2, fmt.Sprintf("Passes of %s (%d) in the next 24 hours", unit.Printable(pass.Satellite, 24), pass.NoradID))
	d.say("   %-23s %-9s %-9s %-9s %7s", "pass_id", "AOS", "TCA", "LOS", "max el")
	for _, p := range doc.Passes {
		d.say("   %-23s %s %s %s %6.1f°", p.ID, p.AOS.Time.Format("15:04:05Z"), p.TCA.Time.Format("15:04:05Z"), p.LOS.Time.Format("15:04:05Z"), p.MaxElDeg)
	}
	return nil
}

func (d *demo) book(ctx context.Context, pass passes.Pass) (string, error) {
	r, err := callTool(ctx, d.c, "schedule_pass", map[string]any{"pass_id": pass.ID, "idempotency_key": "demo"})
	if err != nil {
		return "", err
	}
	d.doc.Booked = r.JSON
	var e schedule.Entry
	if err := json.Unmarshal(r.JSON, &e); err != nil {
		return "", err
	}
	d.head(3, "A pass is booked")
	d.say("   %s", r.Text)
	return e.ID, nil
}

// unsafe asks for what the station must refuse.
func (d *demo) unsafe(ctx context.Context) error {
	z := d.h.cfg.KeepOut[0]
	az, el := (z.AzimuthDeg[0]+z.AzimuthDeg[1])/2, (z.ElevationDeg[0]+z.ElevationDeg[1])/2
	r, err := d.c.CallTool(ctx, "point_antenna", map[string]any{"azimuth_deg": az, "elevation_deg": el})
	if err != nil {
		return err
	}
	if !r.IsError || r.Refusal == nil {
		return errors.New("the station did not refuse to point at the mast")
	}
	d.doc.Refused = r.JSON
	d.head(4, fmt.Sprintf("An unsafe request: point the antenna at azimuth %.0f°, elevation %.0f°", az, el))
	d.say("   refused   %s", r.Refusal.Code)
	d.say("   why       %s", r.Refusal.Why)
	d.say("   do        %s", r.Refusal.Fix)
	if n := r.Refusal.Nearest; n != nil {
		d.say("   allowed   azimuth %.1f°, elevation %.1f° would be", n.AzDeg, n.ElDeg)
	}
	return nil
}

// follow shows the pass until it has ended.
func (d *demo) follow(ctx context.Context, id string) error {
	d.head(5, "The pass, at 20 times the speed")
	last, step := "", -1
	err := d.until(ctx, "the pass", func() (bool, error) {
		e, ok := d.h.book.Get(id)
		if !ok {
			return false, fmt.Errorf("booking %s is gone", id)
		}
		a := d.h.station.Antenna()
		s := d.sample(a)
		if e.State.Terminal() {
			d.endLine()
			d.doc.Result, d.doc.State = e, e.State
			return true, nil
		}
		state := string(e.State)
		if e.State == schedule.Committed {
			state = "waiting"
		}
		n := int(s.Progress * 10)
		changed := state != last || state == string(schedule.Tracking) && n != step
		last, step = state, n
		if state == string(schedule.Tracking) {
			d.doc.Track = append(d.doc.Track, s)
		}
		d.progress(state, s, changed)
		return false, nil
	})
	if err != nil {
		return err
	}
	d.say("   %s: %s", d.doc.State, d.doc.Result.Reason)
	return nil
}

func (d *demo) sample(a station.AntennaView) demoSample {
	s := demoSample{Time: d.h.clk.Now().UTC(), State: string(a.State)}
	if a.Measured != nil {
		s.AzDeg, s.ElDeg = unit.Norm360(a.Measured.AzDeg), a.Measured.ElDeg
	}
	if p := a.Pass; p != nil {
		s.RangeKm, s.DopplerHz, s.ErrorDeg, s.Progress = p.RangeKm, p.DopplerHz, p.ErrorDeg, p.Progress
	}
	if r := d.h.station.Radio(); r.Status != nil {
		s.RadioHz = r.Status.Downlink.FrequencyHz
	}
	return s
}

// progress is one line that is drawn over on a terminal and otherwise printed
// when something has changed.
func (d *demo) progress(state string, s demoSample, changed bool) {
	const width = 20
	full := int(math.Round(s.Progress * width))
	text := fmt.Sprintf("   %-9s [%s%s] %s az %5.1f° el %4.1f°", state, strings.Repeat("#", full), strings.Repeat(".", width-full), s.Time.Format("15:04:05Z"), s.AzDeg, s.ElDeg)
	if s.RangeKm > 0 {
		text += fmt.Sprintf(" %5.0f km %+6d Hz", s.RangeKm, s.DopplerHz)
	}
	if s.ErrorDeg != nil {
		text += fmt.Sprintf(" err %.2f°", *s.ErrorDeg)
	}
	if d.tty {
		n := len([]rune(text))
		fmt.Fprintf(d.out, "\r%s%s", text, strings.Repeat(" ", max(0, d.line-n)))
		d.line = n
		return
	}
	if changed {
		d.say("%s", text)
	}
}

func (d *demo) endLine() {
	if d.tty && d.line > 0 {
		fmt.Fprintln(d.out)
		d.line = 0
	}
}

// until looks again and again until something holds.
func (d *demo) until(ctx context.Context, what string, holds func() (bool, error)) error {
	t := time.NewTicker(demoPoll)
	defer t.Stop()
	for {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			d.endLine()
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		case <-t.C:
		}
	}
}

// received keeps the events that reach the broker.
func (d *demo) received(m sim.Message) {
	if !strings.Contains(m.Topic, "/events/") {
		return
	}
	var e event.Event
	if json.Unmarshal(m.Payload, &e) != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hub = append(d.hub, demoEvent{m.Topic, e.Type, e.ID, e.Sequence, e.Source, e.Time})
}

// summary shows what the hub has received and how the pass ended. It comes
// after the station has ended and delivered everything.
func (d *demo) summary() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.doc.Events = d.hub
	kinds := map[string]int{}
	last := map[string]string{}
	seen := map[string]bool{}
	for _, e := range d.hub {
		kinds[strings.TrimSuffix(strings.TrimPrefix(e.Type, "gsd."), ".v1")]++
		last[e.Source] = max(last[e.Source], e.Sequence)
		seen[e.Source+e.Sequence] = true
	}
	want := 0
	for _, s := range last {
		var n int
		fmt.Sscanf(s, "%d", &n)
		want += n
	}
	d.doc.Missing = want - len(seen)
	names := make([]string, 0, len(kinds))
	for k := range kinds {
		names = append(names, k)
	}
	sort.Strings(names)
	d.head(6, fmt.Sprintf("The hub received %d events, %d missing", len(d.hub), d.doc.Missing))
	for _, k := range names {
		d.say("   %-24s %3d", k, kinds[k])
	}
	r := d.doc.Result
	d.head(7, "Summary")
	d.say("   pass      %s of %s: %s", r.PassID, unit.Printable(r.Satellite, 24), d.doc.State)
	if rec := r.Record; rec != nil {
		d.say("   tracked   %.0f s at 10 Hz (%d setpoints, %d late), %.1f s off the beam", rec.TrackedS, rec.Ticks, rec.LateTicks, rec.OffBeamS)
		d.say("   pointing  error %.2f° median, %.2f° at 99 %%, %.2f° largest", rec.ErrorP50Deg, rec.ErrorP99Deg, rec.ErrorMaxDeg)
		d.say("   Doppler   up to %.1f kHz corrected", float64(rec.DopplerMaxHz)/1000)
	}
	d.say("   refused   1 unsafe request; nothing was sent to the hardware for it")
	d.say("   events    %d at the hub, %d missing", len(d.hub), d.doc.Missing)
	if d.doc.State != schedule.Completed {
		return fmt.Errorf("the pass ended %s: %s", d.doc.State, r.Reason)
	}
	if d.doc.Missing != 0 {
		return fmt.Errorf("%d events did not reach the broker", d.doc.Missing)
	}
	return nil
}

// demoPass chooses a pass that shows the work: high enough to be seen moving,
// short enough for a minute, and possible for the mount.
func demoPass(ctx context.Context, cfg config.Config) (passes.Pass, error) {
	var sets []elements.Set
	byID := map[int]elements.Set{}
	for _, s := range elements.Embedded() {
		if o, ok := cfg.Overrides(s.NoradID); ok && o.DownlinkHz > 0 {
			sets = append(sets, s)
			byID[s.NoradID] = s
		}
	}
	mask, err := cfg.Mask()
	if err != nil {
		return passes.Pass{}, err
	}
	from := newestEpoch()
	found, err := passes.FindAll(ctx, sets, cfg.Site(), passes.Options{From: from, To: from.Add(24 * time.Hour), Horizon: mask, MinElevationDeg: 30}, nil)
	if err != nil {
		return passes.Pass{}, err
	}
	h := &house{cfg: cfg}
	rules, err := h.rules()
	if err != nil {
		return passes.Pass{}, err
	}
	all := found.Passes
	const wanted = 60 // degrees: a good pass, below the keyhole
	sort.SliceStable(all, func(i, j int) bool {
		return math.Abs(all[i].MaxElDeg-wanted) < math.Abs(all[j].MaxElDeg-wanted)
	})
	for _, p := range all {
		if p.InProgressAtStart || p.CutAtEnd || p.Duration() > demoLongest {
			continue
		}
		orbit, err := passes.New(byID[p.NoradID])
		if err != nil {
			continue
		}
		sky := func(t time.Time) (track.Sight, error) {
			l, err := orbit.Look(cfg.Site(), t)
			return track.Sight{AzEl: l.Pointing(), RangeKm: l.RangeKm, RangeRateKmS: l.RangeRateKmS}, err
		}
		park := unit.AzEl{AzDeg: cfg.Rotator.Park.AzimuthDeg, ElDeg: cfg.Rotator.Park.ElevationDeg}
		if _, ref := track.Make(track.Request{Sky: sky, Rules: &rules, From: park, Begin: p.AOS.Time, End: p.LOS.Time, BeamwidthDeg: cfg.Antenna.BeamwidthDeg}); ref == nil {
			return p, nil
		}
	}
	return passes.Pass{}, errors.New("no suitable pass in the embedded elements")
}
