package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/config"
	"gsd-mcp/internal/door"
	"gsd-mcp/internal/elements/catalogue"
	"gsd-mcp/internal/event"
	"gsd-mcp/internal/health"
	"gsd-mcp/internal/hub"
	"gsd-mcp/internal/mcp"
	"gsd-mcp/internal/schedule"
	"gsd-mcp/internal/serialport"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/state"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/tools"
)

// A house is the whole station in one process: what `serve` runs, and what the
// simulated station and the demo run in theirs.
type house struct {
	cfg       config.Config
	log       hclog.Logger
	clk       *clock.Clock
	dir       *state.Dir
	audit     *state.Audit
	outbox    *state.Outbox
	bus       *event.Bus
	watcher   *clock.Watcher
	wind      *windWatch // nil: not fitted
	catalogue *catalogue.Catalogue
	station   *station.Station
	book      *schedule.Book
	runner    *schedule.Runner
	doctor    *tools.Doctor
	server    *mcp.Server
	hub       *hub.Publisher
	sims      []simDevice
	notes     []string // what was repaired

	elementProblems []string // of the files of [elements]

	look chan struct{} // something about the health has changed: look again now

	mu   sync.Mutex
	disk health.Disk

	rotctlErr error // why rotctl's clients cannot connect

	rights atomic.Pointer[door.Policy] // who may do what now; nil before there is a door
}

// A simDevice is a simulated device inside the process.
type simDevice struct {
	dev sim.Device
	pty *sim.PTY
}

// houseOptions say what differs between serve, the simulated station and the
// demo.
type houseOptions struct {
	Config   config.Config
	StateDir string
	Log      hclog.Logger
	Clock    *clock.Clock // nil: the system's, or simulated as the configuration says
	Hub      *hub.Config  // nil: as the configuration says
}

// openHouse puts the house together. It opens the state directory and takes its
// lock, and touches no device: Run does.
func openHouse(o houseOptions) (*house, error) {
	h := &house{cfg: o.Config, log: o.Log, look: make(chan struct{}, 1)}
	if err := h.open(o); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *house) open(o houseOptions) (err error) {
	if h.dir, err = state.Open(o.StateDir); err != nil {
		return err
	}
	simulated := h.simulatedPorts()
	if h.clk = o.Clock; h.clk == nil {
		if h.clk, err = h.clock(simulated); err != nil {
			return err
		}
	}
	if err = h.openState(); err != nil {
		return err
	}
	limits := clock.Limits{Max: ms(h.cfg.Clock.MaxErrorMs), Warn: ms(h.cfg.Clock.WarnErrorMs), Step: ms(h.cfg.Clock.StepMs)}
	h.watcher = clock.NewWatcher(h.clk, clock.SystemReader("/"), limits)
	h.watcher.OnChange(h.clockChanged)
	h.watcher.Refresh()
	h.bus = event.NewBus(event.Options{Station: h.cfg.Station.ID, Simulated: simulated, Clock: h.clk, Crit: h.outbox.Crit, Info: h.outbox.Info,
		Quality: func() string { return h.watcher.Trust().State }, Log: o.Log})
	if err = h.loadElements(); err != nil {
		return err
	}
	if err = h.buildStation(simulated); err != nil {
		return err
	}
	if h.book, err = h.openBook(); err != nil {
		return err
	}
	h.runner = schedule.NewRunner(h.book, h.clk, executor{h}, h.lastAlive())
	if err = h.buildHub(o.Hub); err != nil {
		return err
	}
	h.buildServer(simulated)
	return nil
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// simulatedPorts reports whether no port is real hardware: only then may the
// time be made up, and the station says everywhere that it is simulated.
func (h *house) simulatedPorts() bool {
	fake := func(port string) bool { return port == config.SimPort || serialport.IsPTY(port) }
	if h.cfg.HasRotator() && !fake(h.cfg.Rotator.Port) {
		return false
	}
	for _, r := range h.cfg.Radio {
		if !fake(r.Port) {
			return false
		}
	}
	return h.cfg.HasRotator() || h.cfg.HasRadio()
}

// simClockFile keeps made-up time going over a restart.
const simClockFile = "sim-clock.json"

// simTimeKeeps is how long after its start a simulated time is continued: then
// the embedded elements are too old, and it begins anew.
const simTimeKeeps = 2 * 24 * time.Hour

type simTime struct {
	Start  time.Time `json:"start"`
	Anchor time.Time `json:"anchor"`
	Rate   float64   `json:"rate"`
}

func (h *house) clock(simulated bool) (*clock.Clock, error) {
	s := h.cfg.Simulation
	if !simulated {
		if !s.Start.IsZero() || s.Rate > 1 {
			return nil, errors.New("[simulation] is set, but a port is real hardware: made-up time would point it wrong; remove [simulation]")
		}
		return clock.System(), nil
	}
	t := simTime{s.Start, s.Anchor, s.Rate}
	if t.Rate == 0 {
		t.Rate = 1
	}
	if t.Start.IsZero() && t.Anchor.IsZero() {
		var kept simTime
		if _, err := h.dir.Load(simClockFile, &kept); err == nil && kept.Rate == t.Rate && time.Since(kept.Anchor) >= 0 {
			if c, err := clock.Simulated(kept.Start, kept.Anchor, kept.Rate); err == nil && c.Now().Sub(kept.Start) < simTimeKeeps {
				return c, nil
			}
		}
	}
	if t.Start.IsZero() {
		t.Start = newestEpoch()
	}
	if t.Anchor.IsZero() {
		t.Anchor = time.Now()
	}
	c, err := clock.Simulated(t.Start, t.Anchor, t.Rate)
	if err != nil {
		return nil, fmt.Errorf("[simulation]: %w", err)
	}
	return c, h.dir.Save(simClockFile, t)
}

// openState opens the audit and the outbox.
func (h *house) openState() (err error) {
	note := func(what string, r state.Recovery) {
		for _, n := range r.Notes {
			h.notes = append(h.notes, what+": "+n)
		}
	}
	var rec state.Recovery
	if h.audit, rec, err = state.OpenAudit(h.dir, h.clk.Now); err != nil {
		return fmt.Errorf("open the audit: %w", err)
	}
	note("audit", rec)
	quota := int64(h.cfg.Hub.QuotaMiB) << 20
	if h.outbox, rec, err = state.OpenOutbox(h.dir.Path("outbox"), state.OutboxOptions{CritQuota: quota, InfoQuota: quota, KeepFree: uint64(h.cfg.Hub.ReserveMiB) << 20}); err != nil {
		return fmt.Errorf("open the outbox: %w", err)
	}
	note("outbox", rec)
	return nil
}

func (h *house) clockChanged(c clock.Change) {
	if c.StepBy == 0 || h.bus == nil {
		return
	}
	d := event.ClockStepped{StepS: c.StepBy.Seconds(), Before: c.At.Add(-c.StepBy), After: c.At, Quality: c.After.State}
	go func() { // the watcher must not wait for a disk
		h.station.ClockStepped(c.StepBy)
		if _, err := h.bus.Emit(context.Background(), event.About{Subject: "clock"}, d); err != nil {
			h.log.Error("event was not recorded", "error", err)
		}
	}()
}

// aliveFile is touched while the station runs, for the reason of a missed pass.
const aliveFile = "alive.json"

type alive struct {
	At    time.Time `json:"at"` // station time
	Clean bool      `json:"clean_end"`
}

func (h *house) lastAlive() time.Time {
	var a alive
	if _, err := h.dir.Load(aliveFile, &a); err != nil {
		return time.Time{}
	}
	return a.At
}

func (h *house) previousEnd() string {
	var a alive
	_, err := h.dir.Load(aliveFile, &a)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "first"
	case err == nil && a.Clean:
		return "clean"
	}
	return "unclean"
}

func (h *house) buildHub(o *hub.Config) error {
	c := hub.Config{Station: h.cfg.Station.ID, Broker: h.cfg.Hub.Broker, Username: h.cfg.Hub.Username, PasswordFile: h.cfg.Hub.PasswordFile,
		CAFile: h.cfg.Hub.CAFile, CertFile: h.cfg.Hub.CertFile, KeyFile: h.cfg.Hub.KeyFile, Confirmation: h.cfg.Hub.Confirmation}
	if o != nil {
		c = *o
		c.Station = h.cfg.Station.ID
	}
	if c.Broker == "" {
		return nil
	}
	if c.PasswordFile == "" && c.Password == "" {
		c.Password = os.Getenv("GSD_HUB_PASSWORD")
	}
	c.Dir = h.dir
	c.ClockTrusted = func() bool { t := h.watcher.Trust(); return t.Good && !h.clk.Simulated() || h.clk.Simulated() }
	var err error
	h.hub, err = hub.New(c, h.bus, h.outbox.Crit, h.outbox.Info, h.log)
	return err
}
