package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/unit"
)

// MountConfig describes a simulated antenna mount. Angles are mechanical
// degrees, azimuth unwrapped: 10 and 370 are a full turn of cable apart. Speeds
// are per second of station time.
type MountConfig struct {
	AzMinDeg, AzMaxDeg float64 // end stops; a motor that reaches one is switched off
	ElMinDeg, ElMaxDeg float64
	AzSpeedDps         float64
	ElSpeedDps         float64
	AccelDps2          float64 // of both axes, speeding up and braking
	StartAzDeg         float64
	StartElDeg         float64

	NoiseDeg    float64 // standard deviation of each reading
	BacklashDeg float64 // play between motor, where the sensor sits, and antenna
	Gravity     float64 // 0 to 0.9: how much slower elevation goes up than down
	Seed        uint64  // of the noise
}

// DefaultMount is a mount like a Yaesu G-5500, 450° by 180°, with its azimuth
// speed of 6°/s and an elevation of 3°/s. It stops from full speed within half
// a second. It keeps up with a satellite at 500 km to 82° of elevation.
func DefaultMount() MountConfig {
	return MountConfig{
		AzMinDeg: 0, AzMaxDeg: 450, ElMinDeg: 0, ElMaxDeg: 180,
		AzSpeedDps: 6, ElSpeedDps: 3, AccelDps2: 12,
	}
}

// Truth is where a simulated antenna really points, whatever its controller
// says.
type Truth struct {
	Time      time.Time // station time
	AzDeg     float64   // unwrapped
	ElDeg     float64
	AzRateDps float64
	ElRateDps float64
}

// A Mount is a simulated antenna mount: two axes with speed, acceleration and
// end stops. It has no goroutine: its state is worked out from the station time
// that has passed, so it is exact in fake time. It is safe for concurrent use.
type Mount struct {
	clk *clock.Clock
	cfg MountConfig

	mu    sync.Mutex
	last  time.Time
	az    axis
	el    axis
	noise *rand.Rand
}

// NewMount makes a mount that stands still at its start. It panics on a
// configuration that no mount can have.
func NewMount(clk *clock.Clock, cfg MountConfig) *Mount {
	ok := cfg.AzMinDeg < cfg.AzMaxDeg && cfg.ElMinDeg < cfg.ElMaxDeg &&
		cfg.AzMinDeg <= cfg.StartAzDeg && cfg.StartAzDeg <= cfg.AzMaxDeg &&
		cfg.ElMinDeg <= cfg.StartElDeg && cfg.StartElDeg <= cfg.ElMaxDeg &&
		cfg.AzSpeedDps > 0 && cfg.ElSpeedDps > 0 && cfg.AccelDps2 > 0 &&
		cfg.NoiseDeg >= 0 && cfg.BacklashDeg >= 0 && cfg.Gravity >= 0 && cfg.Gravity <= 0.9
	if !ok {
		panic(fmt.Sprintf("sim: no mount is like %+v", cfg))
	}
	ax := func(lo, hi, start, up, down float64) axis {
		return axis{min: lo, max: hi, up: up, down: down, accel: cfg.AccelDps2, play: cfg.BacklashDeg / 2, pos: start, antenna: start}
	}
	return &Mount{
		clk: clk, cfg: cfg, last: clk.Now(), noise: rand.New(rand.NewPCG(cfg.Seed, 5500)),
		az: ax(cfg.AzMinDeg, cfg.AzMaxDeg, cfg.StartAzDeg, cfg.AzSpeedDps, cfg.AzSpeedDps),
		el: ax(cfg.ElMinDeg, cfg.ElMaxDeg, cfg.StartElDeg, cfg.ElSpeedDps*(1-cfg.Gravity), cfg.ElSpeedDps),
	}
}

// Config is what the mount was made of.
func (m *Mount) Config() MountConfig { return m.cfg }

// Clock is the clock that the mount moves on.
func (m *Mount) Clock() *clock.Clock { return m.clk }

// with runs do on both axes as they are now.
func (m *Mount) with(do func(az, el *axis)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.clk.Now()
	if dt := now.Sub(m.last).Seconds(); dt > 0 {
		m.az.advance(dt)
		m.el.advance(dt)
		m.last = now
	}
	do(&m.az, &m.el)
}

// SetTarget starts both motors towards an unwrapped azimuth and an elevation.
func (m *Mount) SetTarget(azDeg, elDeg float64) {
	m.with(func(az, el *axis) { az.to(azDeg); el.to(elDeg) })
}

// SetAzimuth starts the azimuth motor towards an unwrapped azimuth.
func (m *Mount) SetAzimuth(deg float64) { m.with(func(az, _ *axis) { az.to(deg) }) }

// SetElevation starts the elevation motor.
func (m *Mount) SetElevation(deg float64) { m.with(func(_, el *axis) { el.to(deg) }) }

// TurnAzimuth runs the azimuth motor at a rate, at most its speed, until it is
// stopped; positive is clockwise.
func (m *Mount) TurnAzimuth(dps float64) { m.with(func(az, _ *axis) { az.turn(dps) }) }

// TurnElevation runs the elevation motor; positive is up.
func (m *Mount) TurnElevation(dps float64) { m.with(func(_, el *axis) { el.turn(dps) }) }

// Stop brakes both axes.
func (m *Mount) Stop() { m.with(func(az, el *axis) { az.stop(); el.stop() }) }

// StopAzimuth brakes the azimuth.
func (m *Mount) StopAzimuth() { m.with(func(az, _ *axis) { az.stop() }) }

// StopElevation brakes the elevation.
func (m *Mount) StopElevation() { m.with(func(_, el *axis) { el.stop() }) }

// Jam blocks, or frees, an axis: its motor may run, it does not move.
func (m *Mount) Jam(azimuth, elevation bool) {
	m.with(func(az, el *axis) { az.setJam(azimuth); el.setJam(elevation) })
}

// RunAway makes both motors go on the way they run now, to the end stops, and
// ignore every command; a motor that stands still stays where it is.
func (m *Mount) RunAway(on bool) {
	m.with(func(az, el *axis) { az.runAway(on); el.runAway(on) })
}

// Push moves the antenna by hand or by wind.
func (m *Mount) Push(azDeg, elDeg float64) {
	m.with(func(az, el *axis) { az.push(azDeg); el.push(elDeg) })
}

// Truth is where the antenna points now.
func (m *Mount) Truth() (t Truth) {
	m.with(func(az, el *axis) {
		t = Truth{Time: m.last, AzDeg: az.antenna, ElDeg: el.antenna, AzRateDps: az.vel, ElRateDps: el.vel}
	})
	return t
}

// Reading is what the mount's sensors say now: the motor side, with noise.
// Azimuth is unwrapped.
func (m *Mount) Reading() (at unit.AzEl) {
	m.with(func(az, el *axis) {
		at = unit.AzEl{AzDeg: az.pos + m.cfg.NoiseDeg*m.noise.NormFloat64(), ElDeg: el.pos + m.cfg.NoiseDeg*m.noise.NormFloat64()}
	})
	return at
}

// Target is where the motors are going, or where they stand.
func (m *Mount) Target() (at unit.AzEl) {
	m.with(func(az, el *axis) { at = unit.AzEl{AzDeg: az.goal(), ElDeg: el.goal()} })
	return at
}

// Moving reports whether a motor runs.
func (m *Mount) Moving() (moving bool) {
	m.with(func(az, el *axis) { moving = az.mode != standing || el.mode != standing })
	return moving
}

type axisMode int

const (
	standing axisMode = iota
	seeking           // going to target
	turning           // at a rate
	braking
)

// An axis moves with constant acceleration between its speeds. Time passes in
// phases of constant acceleration in one direction, so every state is exact.
type axis struct {
	min, max, up, down, accel, play float64

	mode    axisMode
	pos     float64 // of the motor
	antenna float64 // follows pos with play
	vel     float64
	target  float64
	rate    float64
	jammed  bool
	runaway bool
}

// hair is an angle or speed too small to matter: what rounding leaves.
const hair = 1e-9

func (a *axis) to(deg float64) {
	if !a.runaway && !math.IsNaN(deg) {
		a.mode, a.target = seeking, deg
	}
}

func (a *axis) turn(dps float64) {
	if !a.runaway && !math.IsNaN(dps) {
		a.mode, a.rate = turning, min(max(dps, -a.down), a.up)
	}
}

func (a *axis) stop() {
	if !a.runaway && a.mode != standing {
		a.mode = braking
	}
}

func (a *axis) setJam(on bool) {
	a.jammed = on
	if on {
		a.vel = 0
	}
}

func (a *axis) runAway(on bool) {
	if on && a.mode != standing {
		way := a.vel
		if way == 0 {
			way = a.goal() - a.pos
		}
		a.turn(math.Copysign(math.Inf(1), way))
	}
	if !on && a.runaway {
		a.mode = braking
	}
	a.runaway = on
}

func (a *axis) push(deg float64) {
	a.pos = min(max(a.pos+deg, a.min), a.max)
	a.antenna = a.pos
}

func (a *axis) goal() float64 {
	if a.mode == seeking {
		return a.target
	}
	return a.pos
}

func (a *axis) advance(dt float64) {
	for dt > 0 && a.mode != standing {
		dt -= a.phase(dt)
	}
}

// phase lets at most dt pass and returns how much did.
func (a *axis) phase(dt float64) float64 {
	if a.jammed {
		return dt
	}
	if math.Abs(a.vel) < hair {
		a.vel = 0
	}
	switch a.mode {
	case turning:
		return a.towardsRate(dt, a.rate)
	case braking:
		if a.vel == 0 {
			a.mode = standing
			return 0
		}
		return a.towardsRate(dt, 0)
	}
	way := a.target - a.pos
	// Where it would stand if it braked now, seen from the target.
	short := way - a.vel*math.Abs(a.vel)/(2*a.accel)
	if math.Abs(short) < 1e-6 { // brake now
		if a.vel == 0 {
			a.pos, a.mode = min(max(a.target, a.min), a.max), standing
			a.run(0, 0)
			return 0
		}
		return a.towardsRate(dt, 0)
	}
	dir := math.Copysign(1, short)
	if a.vel*dir < 0 {
		return a.towardsRate(dt, 0)
	}
	limit := a.up
	if dir < 0 {
		limit = a.down
	}
	v, d := math.Abs(a.vel), way*dir
	if v < limit-hair {
		toLimit := (limit - v) / a.accel
		toBrake := (-v + math.Sqrt(v*v/2+a.accel*d)) / a.accel
		t := min(dt, toLimit, toBrake)
		a.run(t, dir*a.accel)
		return t
	}
	t := min(dt, (d-v*v/(2*a.accel))/v)
	a.run(t, 0)
	return t
}

// towardsRate speeds up or down to a rate, through standstill if it must, or
// goes on at it.
func (a *axis) towardsRate(dt, rate float64) float64 {
	if a.vel*rate < 0 {
		rate = 0
	}
	gap := rate - a.vel
	if math.Abs(gap) < hair { // never with rate turned to 0: vel is 0 or above a hair
		a.vel = rate
		a.run(dt, 0)
		return dt
	}
	t := math.Abs(gap) / a.accel
	if t <= dt {
		a.run(t, math.Copysign(a.accel, gap))
		if a.mode != standing {
			a.vel = rate
		}
		return t
	}
	a.run(dt, math.Copysign(a.accel, gap))
	return dt
}

// run moves for t at an acceleration; the speed does not change its sign.
func (a *axis) run(t, accel float64) {
	a.pos += a.vel*t + accel*t*t/2
	a.vel += accel * t
	if a.pos > a.max || a.pos < a.min {
		out := math.Copysign(1, a.pos-a.min)
		a.pos = min(max(a.pos, a.min), a.max)
		a.vel = 0
		// The switch cuts the motor's way out and leaves it its way in.
		if a.mode == braking || a.mode == turning && a.rate*out >= 0 || a.mode == seeking && (a.target-a.pos)*out >= 0 {
			a.mode = standing
		}
	}
	a.antenna = min(max(a.antenna, a.pos-a.play), a.pos+a.play)
}
