package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"gsd-mcp/internal/config"
	"gsd-mcp/internal/event"
	"gsd-mcp/internal/health"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/radio"
	"gsd-mcp/internal/rotator"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/serialport"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/unit"
)

// rules are the gate's fixed limits from the configuration.
func (h *house) rules() (safety.Rules, error) {
	c := h.cfg
	mask, err := c.Mask()
	if err != nil {
		return safety.Rules{}, err
	}
	l := c.Rotator.Limits
	r := safety.Rules{
		Travel:    safety.Travel{AzMinDeg: l.AzimuthMinDeg, AzMaxDeg: l.AzimuthMaxDeg, ElMinDeg: l.ElevationMinDeg, ElMaxDeg: l.ElevationMaxDeg},
		MarginDeg: l.MarginDeg, Offset: unit.AzEl{AzDeg: c.Rotator.OffsetAzimuthDeg, ElDeg: c.Rotator.OffsetElevationDeg}, Horizon: mask,
		AzSpeedDps: l.AzimuthSpeedDps, ElSpeedDps: l.ElevationSpeedDps, AccelDps2: l.AccelerationDps2, SunSeparationDeg: c.Antenna.SunSeparationDeg,
		// How old a reading may be is a deadline of the wire, which made-up time does
		// not shorten.
		FeedbackMoving: h.wireTime(c.Rotator.Watch.StaleMovingS), FeedbackIdle: h.wireTime(c.Rotator.Watch.StaleIdleS),
	}
	for _, z := range c.KeepOut {
		r.Zones = append(r.Zones, safety.Zone{Name: z.Name, AzFromDeg: z.AzimuthDeg[0], AzToDeg: z.AzimuthDeg[1], ElMinDeg: z.ElevationDeg[0], ElMaxDeg: z.ElevationDeg[1], Reason: z.Reason})
	}
	return r, nil
}

// wireTime is a real time in seconds as station time.
func (h *house) wireTime(seconds int) time.Duration {
	d := time.Duration(seconds) * time.Second
	if h.clk != nil {
		d = h.clk.Station(d)
	}
	return d
}

func (h *house) buildStation(simulated bool) error {
	rules, err := h.rules()
	if err != nil {
		return err
	}
	o := station.Options{Clock: h.clk, Site: h.cfg.Site(), Rules: rules, BeamwidthDeg: h.cfg.Antenna.BeamwidthDeg,
		Park:  unit.AzEl{AzDeg: h.cfg.Rotator.Park.AzimuthDeg, ElDeg: h.cfg.Rotator.Park.ElevationDeg},
		Store: h.dir, Audit: h.audit, Bus: h.bus, Orbits: &orbits{h: h, of: map[int]*passes.Orbit{}},
		Trust: func() station.Trust {
			t := h.watcher.Trust()
			return station.Trust{Good: t.Good, State: t.State, Why: t.Why}
		},
		BootID:    event.BootID(),
		Simulated: simulated, ReadOnly: h.cfg.Access.ReadOnly,
		AgentBudget: station.Budget{Bookings: h.cfg.Access.Budgets.BookingsPerHour, Moves: h.cfg.Access.Budgets.MovesPerHour},
		Log:         h.log}
	if h.wind = newWindWatch(h.cfg.Weather); h.wind != nil {
		o.Wind = h.wind.verdict
	}
	if !simulated {
		o.Power = powerLow("/")
	}
	if h.cfg.HasRotator() {
		if o.Rotator, err = h.rotator(); err != nil {
			return err
		}
	}
	if r, ok := h.cfg.RadioFor("downlink"); ok {
		if o.Radio, err = h.radio(r); err != nil {
			return err
		}
	}
	var note string
	h.station, note, err = station.New(o)
	if note != "" {
		h.notes = append(h.notes, note)
	}
	return err
}

func (h *house) rotator() (*station.RotatorOptions, error) {
	c := h.cfg.Rotator
	d, err := rotator.Lookup(c.Driver)
	if err != nil {
		return nil, err
	}
	if c.SettleMs > 0 {
		d.Caps.Settle = ms(c.SettleMs)
	}
	port := c.Port
	o := &station.RotatorOptions{Driver: d, DeadbandDeg: c.DeadbandDeg, MinInterval: ms(c.MinIntervalMs), Absolute: c.AbsoluteAzimuth, Watch: watchOf(c.Watch)}
	if port == config.SimPort {
		l, at := c.Limits, parked(c)
		mount := sim.NewMount(h.clk, sim.MountConfig{AzMinDeg: l.AzimuthMinDeg, AzMaxDeg: l.AzimuthMaxDeg, ElMinDeg: l.ElevationMinDeg, ElMaxDeg: l.ElevationMaxDeg,
			AzSpeedDps: l.AzimuthSpeedDps, ElSpeedDps: l.ElevationSpeedDps, AccelDps2: l.AccelerationDps2, StartAzDeg: at.AzDeg, StartElDeg: at.ElDeg})
		ctl, err := sim.NewController(c.Driver, mount)
		if err != nil {
			return nil, err
		}
		if port, err = h.simulate(ctl); err != nil {
			return nil, err
		}
	}
	o.Open = opener(serialport.Config{Path: port, Baud: orDefault(c.Baud, d.Baud), Stop2: d.Stop2})
	return o, nil
}

// watchOf is [rotator.watch] for the rotator's owner.
func watchOf(c config.Watch) station.Watch {
	s := func(n int) time.Duration { return time.Duration(n) * time.Second }
	return station.Watch{StallDeg: c.StallDeg, StallWithin: s(c.StallS), StartWithin: s(c.StartS), WrongWayDeg: c.WrongWayDeg, OvershootDeg: c.OvershootDeg,
		UncommandedDeg: c.UncommandedDeg, JumpFactor: c.JumpFactor, StopWithin: s(c.StopS), StopRetry: ms(c.StopRetryMs), TrackErrorDeg: c.TrackErrorDeg, TrackErrorFor: s(c.TrackErrorS)}
}

// parked is the park position, a true direction, as the mount counts it: on the
// turn that is nearest to the middle of its travel.
func parked(c config.Rotator) unit.AzEl {
	l := c.Limits
	az := unit.Nearest(c.Park.AzimuthDeg-c.OffsetAzimuthDeg, (l.AzimuthMinDeg+l.AzimuthMaxDeg)/2)
	return unit.AzEl{
		AzDeg: min(max(az, l.AzimuthMinDeg), l.AzimuthMaxDeg),
		ElDeg: min(max(c.Park.ElevationDeg-c.OffsetElevationDeg, l.ElevationMinDeg), l.ElevationMaxDeg),
	}
}

func (h *house) radio(c config.Radio) (*station.RadioOptions, error) {
	m, err := radio.Lookup(c.Driver)
	if err != nil {
		return nil, err
	}
	port := c.Port
	if port == config.SimPort {
		dev, err := sim.NewRadio(simulatedModel(c.Driver), h.clk)
		if err != nil {
			return nil, err
		}
		if port, err = h.simulate(dev); err != nil {
			return nil, err
		}
	}
	return &station.RadioOptions{Model: m, Open: opener(serialport.Config{Path: port, Baud: orDefault(c.Baud, m.Baud), Stop2: m.Stop2, HangUp: c.KeyingLine != "none"})}, nil
}

// simulate puts a simulated device on a pseudo-terminal of its own.
func (h *house) simulate(dev sim.Device) (port string, err error) {
	pty, err := sim.OpenPTY()
	if err != nil {
		return "", err
	}
	h.sims = append(h.sims, simDevice{dev, pty})
	return pty.Name, nil
}

// opener opens a port again and again. The first adapter that is found there is
// the one: behind the same name another kind is refused, since a name such as
// ttyUSB0 can come to mean the other device after an unplug.
func opener(c serialport.Config) station.Opener {
	var mu sync.Mutex
	return func(ctx context.Context) (station.Wire, error) {
		mu.Lock()
		defer mu.Unlock()
		p, err := serialport.Open(ctx, c)
		if err != nil {
			return nil, err
		}
		if c.Identity == "" {
			c.Identity = p.Identity()
		}
		return p, nil
	}
}

// simulatedModel is the simulated radio's name for a driver's: ic-9700 for
// icom-ic9700.
func simulatedModel(driver string) string {
	bare := func(s string) string { return strings.ReplaceAll(s, "-", "") }
	for _, m := range sim.RadioModels() {
		if strings.HasSuffix(bare(driver), bare(m)) {
			return m
		}
	}
	return driver
}

// powerEvery is how old a look at the supply voltage may be: the gate asks
// often, and sysfs is slow.
const powerEvery = 2 * time.Second

// powerLow answers the gate from sysfs below root.
func powerLow(root string) func() (bool, string) {
	var (
		mu   sync.Mutex
		at   time.Time
		low  bool
		said string
	)
	return func() (bool, string) {
		mu.Lock()
		defer mu.Unlock()
		if at.IsZero() || time.Since(at) > powerEvery {
			at = time.Now()
			said, low = health.ReadBoard(root).Power.Low()
		}
		return low, said
	}
}
