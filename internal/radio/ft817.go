package radio

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ft817 drives the FT-817 family (FT-817, 818, 857, 897): half duplex, each
// setting acknowledged by one byte. It serves one path, on the VFO that is
// selected, and leaves the VFOs alone: two-way satellite work takes two radios.
type ft817 struct {
	caps Caps
	name string
	wire *fiveByte
	only Path
}

// allowsFT817 reports whether a frame may ever be sent. 08 (PTT), 0F (power)
// and BC (write to EEPROM) are not here, nor is 00, which on this family locks
// the dial.
func allowsFT817(f fiveFrame) bool {
	switch f[4] {
	case 0x01:
		return f.carriesHz()
	case 0x07:
		return f.carriesMode()
	case 0x03, 0x88, 0xF7:
		return f.empty()
	}
	return false
}

func (r *ft817) transmitting(ctx context.Context) (bool, error) {
	b, err := r.wire.ask(ctx, 0xF7, 1)
	if err != nil {
		return false, err
	}
	return fiveKeyed(b), nil
}

func (r *ft817) receiving(ctx context.Context) error {
	keyed, err := r.transmitting(ctx)
	if err == nil && keyed {
		err = ErrTransmitting // it would ignore the setting
	}
	return err
}

func (r *ft817) read(ctx context.Context) (Tuning, error) {
	b, err := r.wire.ask(ctx, 0x03, 5)
	if err != nil {
		return Tuning{}, err
	}
	return parseFive(b)
}

// set sends a setting and takes its acknowledgement: 00 done, F0 already so. A
// lost one is no failure: the read-back decides.
func (r *ft817) set(ctx context.Context, f fiveFrame) error {
	_, err := r.wire.send(ctx, f, 1)
	if errors.Is(err, ErrSilent) && ctx.Err() == nil {
		return nil
	}
	return err
}

// apply sends a setting until the radio shows it, at most twice.
func (r *ft817) apply(ctx context.Context, f fiveFrame, good func(Tuning) bool) (got Tuning, err error) {
	for range 2 {
		if err := r.set(ctx, f); err != nil {
			return got, err
		}
		if got, err = r.read(ctx); err != nil || good(got) {
			return got, err
		}
	}
	return got, fmt.Errorf("reads %s %s: %w", formatHz(got.FrequencyHz), got.Mode, ErrMismatch)
}

// Status reads the selected VFO, which is the path that was prepared or tuned.
func (r *ft817) Status(ctx context.Context) (st Status, err error) {
	defer func() { err = failure(r.name, "read status", err) }()
	if st.Transmitting, err = r.transmitting(ctx); err != nil {
		return st, err
	}
	t, err := r.read(ctx)
	if r.only == Uplink {
		st.Uplink = t
	} else {
		st.Downlink = t
	}
	return st, err
}

// Tune sets the frequency, while the radio receives.
func (r *ft817) Tune(ctx context.Context, p Path, hz int64) (int64, error) {
	got, err := r.tune(ctx, p, hz)
	return got, failure(r.name, fmt.Sprintf("tune %s to %s", printable(string(p)), formatHz(hz)), err)
}

func (r *ft817) tune(ctx context.Context, p Path, hz int64) (int64, error) {
	if _, err := vfoOf(p); err != nil {
		return 0, err
	}
	if err := r.caps.checkFrequency(hz); err != nil {
		return 0, err
	}
	if err := onePath(&r.only, p); err != nil {
		return 0, err
	}
	hz = r.caps.nearest(hz)
	f, err := fiveHz(0x01, hz)
	if err != nil {
		return 0, err
	}
	if err := r.receiving(ctx); err != nil {
		return 0, err
	}
	got, err := r.apply(ctx, f, func(t Tuning) bool { return t.FrequencyHz == hz })
	return got.FrequencyHz, err
}

// SetMode sets the mode, while the radio receives.
func (r *ft817) SetMode(ctx context.Context, p Path, m Mode) error {
	return failure(r.name, fmt.Sprintf("set %s mode %s", printable(string(p)), printable(string(m))), r.setMode(ctx, p, m))
}

func (r *ft817) setMode(ctx context.Context, p Path, m Mode) error {
	if _, err := vfoOf(p); err != nil {
		return err
	}
	if err := r.caps.checkMode(m); err != nil {
		return err
	}
	code, err := fiveModeCode(m)
	if err != nil {
		return err
	}
	if err := onePath(&r.only, p); err != nil {
		return err
	}
	if err := r.receiving(ctx); err != nil {
		return err
	}
	_, err = r.apply(ctx, fiveFrame{code, 0, 0, 0, 0x07}, func(t Tuning) bool { return t.Mode == m })
	return err
}

// Prepare sets the one path that is not zero.
func (r *ft817) Prepare(ctx context.Context, down, up Tuning) error {
	return failure(r.name, "prepare", r.prepare(ctx, down, up))
}

func (r *ft817) prepare(ctx context.Context, down, up Tuning) error {
	if err := checkPair(r.caps, down, up); err != nil {
		return err
	}
	t, p, err := onlyOne(down, up)
	if err != nil {
		return err
	}
	r.only = p
	if t == (Tuning{}) {
		return r.receiving(ctx)
	}
	if _, err := r.tune(ctx, p, t.FrequencyHz); err != nil {
		return err
	}
	if t.Mode == "" {
		return nil
	}
	return r.setMode(ctx, p, t.Mode)
}

// Halt makes sure that the radio receives.
func (r *ft817) Halt(ctx context.Context) error {
	return failure(r.name, "stop transmitting", haltFive(ctx, r.wire, 1))
}

// haltFive asks, and says "receive" to a radio that transmits or does not
// answer; acks is how many bytes it acknowledges that with.
func haltFive(ctx context.Context, wire *fiveByte, acks int) error {
	keyed := func(ctx context.Context) (bool, error) {
		b, err := wire.send(ctx, command(0xF7), 1)
		if err != nil {
			wire.cut = true // perhaps it stands in the middle of a frame
			return true, err
		}
		return fiveKeyed(b), nil
	}
	receive := func(ctx context.Context) error {
		_, err := wire.send(ctx, command(0x88), acks)
		return err
	}
	return untilReceiving(ctx, keyed, receive)
}

func ft817Models() []Model {
	low := Range{100e3, 56e6}
	caps := func(receive ...Range) Caps {
		return Caps{
			Readback: true, StepHz: 10, Receive: receive, Modes: []Mode{LSB, USB, CW, CWR, AM, WFM, FM, FMN, USBD, FMD},
			Reply: 300 * time.Millisecond, MinInterval: 50 * time.Millisecond,
		}
	}
	row := func(name, short, title string, c Caps) Model {
		return Model{Name: name, Aliases: []string{short}, Title: title, Baud: 38400, Stop2: true, Caps: c, New: func(l Link) Radio {
			return &ft817{caps: c, name: short, wire: &fiveByte{link: l, allowed: allowsFT817, reply: c.Reply, gap: c.MinInterval}}
		}}
	}
	portable := caps(low, Range{76e6, 154e6}, Range{420e6, 470e6})
	mobile := caps(low, Range{76e6, 108e6}, Range{118e6, 164e6}, Range{420e6, 470e6})
	return []Model{
		row("yaesu-ft817", "ft-817", "Yaesu FT-817", portable),
		row("yaesu-ft818", "ft-818", "Yaesu FT-818", portable),
		row("yaesu-ft857", "ft-857", "Yaesu FT-857", mobile),
		row("yaesu-ft897", "ft-897", "Yaesu FT-897", mobile),
	}
}
