package track

import (
	"context"
	"math"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/unit"
)

// Period is the time between two setpoints, station time.
const Period = 100 * time.Millisecond

// A Setpoint is where the antenna should be at an instant.
type Setpoint struct {
	Mech  unit.AzEl // mechanical, on the planned winding
	Sight Sight     // the satellite at For
	For   time.Time // the instant it is meant for
}

// A Mover takes setpoints. Set returns at once: the newest setpoint wins, an
// older one that was not sent yet is forgotten. An error ends the tracking.
type Mover interface {
	Set(sp Setpoint) error
	// Lead is the measured time from a setpoint to its effect, station time.
	Lead() time.Duration
}

// A Tally counts the ticks of a tracking loop.
type Tally struct {
	Ticks int `json:"ticks"`
	Late  int `json:"late_ticks"` // dropped because the loop came too late
}

// Follow gives setpoints for the plan every Period until the plan ends or ctx
// does. Deadlines are absolute; a tick that comes late is dropped and counted,
// never replayed.
func Follow(ctx context.Context, clk *clock.Clock, p *Plan, m Mover) (Tally, error) {
	var tally Tally
	next := clk.Now()
	for {
		now := clk.Now()
		if !now.Before(p.End) {
			return tally, nil
		}
		if err := p.tick(now, m); err != nil {
			return tally, err
		}
		tally.Ticks++
		next = next.Add(Period)
		if late := clk.Now().Sub(next); late > 0 {
			n := int(late/Period) + 1
			tally.Late += n
			next = next.Add(time.Duration(n) * Period)
		}
		if err := clk.Sleep(ctx, next.Sub(clk.Now())); err != nil {
			return tally, err
		}
	}
}

// tick gives the setpoint for what is asked now and takes effect a lead later.
func (p *Plan) tick(now time.Time, m Mover) error {
	at := now.Add(m.Lead())
	mech, sight, err := p.At(at)
	if err != nil {
		return err
	}
	return m.Set(Setpoint{Mech: mech, Sight: sight, For: at})
}

// Doppler steps: the dead band around the wanted frequency inside which a
// receiver is left alone, by mode. A voice FM receiver hears nothing below half
// a kilohertz; on SSB 20 Hz are audible. (radio.md, sections 2.8 and 9.)
func dopplerBand(mode string) float64 {
	switch mode {
	case "FM", "WFM", "DV":
		return 500
	case "AM":
		return 200
	case "USB", "LSB", "CW", "CW-R":
		return 20
	}
	return 50
}

// DopplerPeriod is how often a receiver may be retuned, station time.
const DopplerPeriod = time.Second

// speedOfLightKmS is exact.
const speedOfLightKmS = 299792.458

// Received is the frequency in Hz at which a carrier of nominal Hz arrives when
// the range changes by rangeRateKmS (positive: receding). First order in v/c:
// the rest is under 0.3 Hz at 437 MHz.
func Received(nominalHz int64, rangeRateKmS float64) int64 {
	return nominalHz + int64(math.Round(-float64(nominalHz)*rangeRateKmS/speedOfLightKmS))
}

// A Tuner sets a receiver. Tune returns at once: the newest frequency wins.
type Tuner interface {
	Tune(frequencyHz int64) error
	// Lead is the measured time from a command to its effect, station time.
	Lead() time.Duration
}

// FollowDoppler keeps a receiver on a carrier of nominalHz until the plan ends
// or ctx does, stepping only when the error leaves the mode's dead band.
func FollowDoppler(ctx context.Context, clk *clock.Clock, p *Plan, nominalHz int64, mode string, r Tuner) error {
	var set int64
	next := clk.Now()
	for {
		now := clk.Now()
		if !now.Before(p.End) {
			return nil
		}
		_, s, err := p.At(now.Add(r.Lead()))
		if err != nil {
			return err
		}
		want := Received(nominalHz, s.RangeRateKmS)
		if set == 0 || math.Abs(float64(want-set)) >= dopplerBand(mode) {
			if err := r.Tune(want); err != nil {
				return err
			}
			set = want
		}
		next = next.Add(DopplerPeriod)
		if late := clk.Now().Sub(next); late > 0 {
			next = next.Add((late/DopplerPeriod + 1) * DopplerPeriod)
		}
		if err := clk.Sleep(ctx, next.Sub(clk.Now())); err != nil {
			return err
		}
	}
}
