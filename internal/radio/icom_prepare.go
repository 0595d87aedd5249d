package radio

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Prepare sets up a pass. With an uplink it needs a cross-band pair on a model
// with two bands; a model with VFOs gets split. MAIN (or VFO A) stays selected.
func (r *icom) Prepare(ctx context.Context, down, up Tuning) error {
	return failure(r.name, "prepare", r.prepare(ctx, down, up))
}

func (r *icom) prepare(ctx context.Context, down, up Tuning) error {
	zero := Tuning{}
	if err := checkPair(r.caps, down, up); err != nil {
		return err
	}
	down.FrequencyHz, up.FrequencyHz = r.caps.nearest(down.FrequencyHz), r.caps.nearest(up.FrequencyHz)
	keyed, err := r.transmitting(ctx)
	if err != nil {
		return err
	}
	if keyed {
		return ErrTransmitting
	}
	if err := r.preparePair(ctx, up != zero); err != nil {
		return err
	}
	if err := r.choose(ctx, Downlink); err != nil {
		return err
	}
	if !r.dual && r.byVFO {
		return r.prepareVFOs(ctx, down, up)
	}
	if down != zero {
		if err := r.prepareSide(ctx, Downlink, down); err != nil {
			return err
		}
	}
	if up == zero {
		return nil
	}
	err = r.choose(ctx, Uplink)
	if err == nil {
		err = r.prepareSide(ctx, Uplink, up)
	}
	err = errors.Join(err, r.choose(context.WithoutCancel(ctx), Downlink))
	if err != nil {
		return err
	}
	return r.confirmPair(ctx, down, up)
}

// preparePair switches satellite mode or split on where an uplink is wanted.
// Without one it is left as the operator has it.
func (r *icom) preparePair(ctx context.Context, want bool) error {
	have, err := r.readPair(ctx)
	if err != nil || !want || have {
		return err
	}
	cmd := r.pairCommand()
	if cmd == nil { // IC-821H: from the front panel only
		r.sat = yes
		return nil
	}
	if err := r.wire.set(ctx, append(slices.Clone(cmd), on)...); err != nil && !errors.Is(err, ErrSilent) {
		return fmt.Errorf("switch satellite mode or split on: %w", err)
	}
	if have, err = r.readPair(ctx); err == nil && !have {
		err = fmt.Errorf("satellite mode or split was switched on and reads off: %w", ErrMismatch)
	}
	return err
}

// prepareSide sets what is selected.
func (r *icom) prepareSide(ctx context.Context, p Path, t Tuning) error {
	if _, err := r.setHzMoving(ctx, t.FrequencyHz, r.dual && p == Downlink); err != nil {
		return fmt.Errorf("%s %s: %w", p, formatHz(t.FrequencyHz), err)
	}
	if t.Mode == "" {
		return nil
	}
	if err := r.setMode(ctx, t.Mode, r.plain(), 0); err != nil {
		return fmt.Errorf("%s: %w", p, err)
	}
	if p == Uplink {
		r.upMode = t.Mode
	}
	return nil
}

func (r *icom) prepareVFOs(ctx context.Context, down, up Tuning) error {
	for vfo, t := range []Tuning{down, up} {
		if t == (Tuning{}) {
			continue
		}
		if _, err := r.setHz(ctx, t.FrequencyHz, civVFOHz, byte(vfo)); err != nil {
			return err
		}
		if t.Mode == "" {
			continue
		}
		if err := r.setMode(ctx, t.Mode, false, byte(vfo)); err != nil {
			return err
		}
	}
	if up == (Tuning{}) {
		return nil
	}
	return r.confirmUplink(ctx, up.FrequencyHz)
}

// confirmPair reads everything back once more: setting one side must not have
// moved the other.
func (r *icom) confirmPair(ctx context.Context, down, up Tuning) error {
	if pair, err := r.readPair(ctx); err != nil || !pair {
		return errors.Join(err, fmt.Errorf("satellite mode or split is off again: %w", ErrMismatch))
	}
	if down != (Tuning{}) {
		got, err := r.readHz(ctx, r.hzCommand()...)
		if err != nil {
			return err
		}
		if r.caps.nearest(got) != down.FrequencyHz {
			return fmt.Errorf("downlink is set to %s and reads %s: %w", formatHz(down.FrequencyHz), formatHz(got), ErrMismatch)
		}
	}
	return r.confirmUplink(ctx, up.FrequencyHz)
}
