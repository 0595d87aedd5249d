package radio

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ft847Spec is what tells an FT-847 from an FT-736R.
type ft847Spec struct {
	caps    Caps
	byteGap time.Duration
	// Commands: frequency, mode and (0: none) reading, of the main VFO and of the
	// receive and transmit sides of satellite mode or full duplex.
	main, rx, tx struct{ hz, mode, read byte }
	sat          byte // satellite mode or full duplex on
	status       byte // transmit status, 0: none
	giga         bool // a first digit C stands for 1200 MHz
}

// ft847 drives the FT-847 (satellite mode) and the FT-736R (full duplex). No
// setting is acknowledged. An FT-736R, and an FT-847 from before production
// 8G05, cannot be read: of an FT-736R the status is what was commanded, and an
// old FT-847 fails with an error that says that it did not answer.
type ft847 struct {
	ft847Spec
	name     string
	wire     *fiveByte
	cat      bool // CAT has been switched on
	pair     bool // satellite mode or full duplex, as commanded: it cannot be read
	down, up Tuning
}

// allows reports whether a frame may ever be sent. 08 (PTT on) is not here.
func (s ft847Spec) allows(f fiveFrame) bool {
	switch f[4] {
	case 0x00, 0x88, s.sat:
		return f.empty()
	case s.main.hz, s.rx.hz, s.tx.hz:
		if s.giga && f[0]>>4 == 0xC {
			f[0] &= 0x0F
		}
		return f.carriesHz()
	case s.main.mode, s.rx.mode, s.tx.mode:
		return f.carriesMode()
	case s.main.read, s.rx.read, s.tx.read, s.status:
		return f[4] != 0 && f.empty()
	}
	return false
}

// begin switches CAT on before the first exchange, and again after a silence:
// the radio may have been switched off in between.
func (r *ft847) begin(ctx context.Context) error {
	if r.cat {
		return nil
	}
	_, err := r.wire.send(ctx, command(0x00), 0)
	r.cat = err == nil
	return err
}

func (r *ft847) doubt(err error) error {
	if err != nil {
		r.cat = false
	}
	return err
}

func (r *ft847) receiving(ctx context.Context) error {
	if r.status == 0 {
		return nil
	}
	b, err := r.wire.ask(ctx, r.status, 1)
	if err == nil && fiveKeyed(b) {
		err = ErrTransmitting
	}
	return err
}

// side is the set of commands for a path.
func (r *ft847) side(p Path) (hz, mode, read byte, err error) {
	s := r.main
	switch {
	case p != Downlink && p != Uplink:
		return 0, 0, 0, unknownPath(p)
	case r.pair && p == Downlink:
		s = r.rx
	case r.pair:
		s = r.tx
	case p == Uplink:
		return 0, 0, 0, fmt.Errorf("satellite mode or full duplex has not been switched on: prepare the radio for a pass first: %w", ErrUnsupported)
	}
	return s.hz, s.mode, s.read, nil
}

// Status reads both sides, or on an FT-736R tells what was commanded.
func (r *ft847) Status(ctx context.Context) (st Status, err error) {
	defer func() { err = failure(r.name, "read status", r.doubt(err)) }()
	if err := r.begin(ctx); err != nil {
		return st, err
	}
	st.Satellite = r.pair
	if r.status == 0 {
		st.Downlink, st.Uplink = r.down, r.up
		return st, nil
	}
	b, err := r.wire.ask(ctx, r.status, 1)
	if err != nil {
		return st, err
	}
	st.Transmitting = fiveKeyed(b)
	if st.Downlink, err = r.read(ctx, Downlink); err != nil || !r.pair {
		return st, err
	}
	st.Uplink, err = r.read(ctx, Uplink)
	return st, err
}

func (r *ft847) read(ctx context.Context, p Path) (Tuning, error) {
	_, _, op, err := r.side(p)
	if err != nil {
		return Tuning{}, err
	}
	b, err := r.wire.ask(ctx, op, 5)
	if err != nil {
		return Tuning{}, err
	}
	return parseFive(b)
}

// apply sends a setting and, where the radio can be read, does so until it
// shows the setting, at most twice.
func (r *ft847) apply(ctx context.Context, p Path, f fiveFrame, want Tuning, good func(Tuning) bool) (Tuning, error) {
	got := want
	for range 2 {
		if _, err := r.wire.send(ctx, f, 0); err != nil {
			return Tuning{}, err
		}
		if !r.caps.Readback {
			return want, nil
		}
		var err error
		if got, err = r.read(ctx, p); err != nil || good(got) {
			return got, err
		}
	}
	return got, fmt.Errorf("reads %s %s: %w", formatHz(got.FrequencyHz), got.Mode, ErrMismatch)
}

func (r *ft847) last(p Path) *Tuning {
	if p == Uplink {
		return &r.up
	}
	return &r.down
}

// Tune sets one frequency.
func (r *ft847) Tune(ctx context.Context, p Path, hz int64) (int64, error) {
	got, err := r.tune(ctx, p, hz)
	return got, failure(r.name, fmt.Sprintf("tune %s to %s", printable(string(p)), formatHz(hz)), err)
}

func (r *ft847) tune(ctx context.Context, p Path, hz int64) (int64, error) {
	if err := r.caps.checkFrequency(hz); err != nil {
		return 0, err
	}
	op, _, _, err := r.side(p)
	if err != nil {
		return 0, err
	}
	hz = r.caps.nearest(hz)
	f, err := r.encode(op, hz)
	if err != nil {
		return 0, err
	}
	if err := r.begin(ctx); err != nil {
		return 0, err
	}
	got, err := r.apply(ctx, p, f, Tuning{FrequencyHz: hz}, func(t Tuning) bool { return t.FrequencyHz == hz })
	if err == nil {
		r.last(p).FrequencyHz = got.FrequencyHz
	}
	return got.FrequencyHz, r.doubt(err)
}

// encode builds a frequency frame. An FT-736R writes 1200 MHz as the digit C.
func (r *ft847) encode(op byte, hz int64) (fiveFrame, error) {
	if !r.giga || hz < 1200e6 || hz >= 1300e6 {
		return fiveHz(op, hz)
	}
	f, err := fiveHz(op, hz-1200e6)
	f[0] |= 0xC0
	return f, err
}

// SetMode sets the mode of one path.
func (r *ft847) SetMode(ctx context.Context, p Path, m Mode) error {
	return failure(r.name, fmt.Sprintf("set %s mode %s", printable(string(p)), printable(string(m))), r.setMode(ctx, p, m))
}

func (r *ft847) setMode(ctx context.Context, p Path, m Mode) error {
	if err := r.caps.checkMode(m); err != nil {
		return err
	}
	code, err := fiveModeCode(m)
	if err != nil {
		return err
	}
	_, op, _, err := r.side(p)
	if err != nil {
		return err
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	_, err = r.apply(ctx, p, fiveFrame{code, 0, 0, 0, op}, Tuning{Mode: m}, func(t Tuning) bool { return t.Mode == m })
	if err == nil {
		r.last(p).Mode = m
	}
	return r.doubt(err)
}

// Prepare sets up a pass: satellite mode or full duplex for an uplink, which
// recalls whatever the radio had there, so both sides are set afterwards.
func (r *ft847) Prepare(ctx context.Context, down, up Tuning) error {
	return failure(r.name, "prepare", r.doubt(r.prepare(ctx, down, up)))
}

func (r *ft847) prepare(ctx context.Context, down, up Tuning) error {
	if err := checkPair(r.caps, down, up); err != nil {
		return err
	}
	if err := r.begin(ctx); err != nil {
		return err
	}
	if err := r.receiving(ctx); err != nil {
		return err
	}
	if up != (Tuning{}) && !r.pair {
		if _, err := r.wire.send(ctx, command(r.sat), 0); err != nil {
			return err
		}
		r.pair = true
	}
	for _, s := range []struct {
		p Path
		t Tuning
	}{{Downlink, down}, {Uplink, up}} {
		if s.t == (Tuning{}) {
			continue
		}
		_, err := r.tune(ctx, s.p, s.t.FrequencyHz)
		if err == nil && s.t.Mode != "" {
			err = r.setMode(ctx, s.p, s.t.Mode)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", s.p, err)
		}
	}
	return nil
}

// Halt makes sure that the radio receives. An FT-736R cannot say whether it
// does: it is told to, three times.
func (r *ft847) Halt(ctx context.Context) error {
	if err := r.begin(ctx); err != nil {
		return failure(r.name, "stop transmitting", err)
	}
	if r.status != 0 {
		return failure(r.name, "stop transmitting", r.doubt(haltFive(ctx, r.wire, 0)))
	}
	var errs error
	for range 3 {
		if _, err := r.wire.send(ctx, command(0x88), 0); err != nil {
			errs = errors.Join(errs, err)
		}
		// The next one finds the radio at the start of a frame, wherever it was.
		if err := pause(ctx, fiveQuiet); err != nil {
			return failure(r.name, "stop transmitting", errors.Join(errs, err))
		}
	}
	return failure(r.name, "stop transmitting", errs)
}

func ft847Models() []Model {
	type ops = struct{ hz, mode, read byte }
	modes := []Mode{LSB, USB, CW, CWR, AM, FM, FMN}
	row := func(name, short, title string, baud int, s ft847Spec) Model {
		s.caps.FullDuplex, s.caps.Satellite, s.caps.StepHz = true, true, 10
		return Model{Name: name, Aliases: []string{short}, Title: title, Baud: baud, Stop2: true, Caps: s.caps, New: func(l Link) Radio {
			return &ft847{ft847Spec: s, name: short, wire: &fiveByte{link: l, allowed: s.allows, reply: s.caps.Reply, gap: s.caps.MinInterval, byteGap: s.byteGap}}
		}}
	}
	return []Model{
		row("yaesu-ft847", "ft-847", "Yaesu FT-847", 57600, ft847Spec{
			main: ops{0x01, 0x07, 0x03}, rx: ops{0x11, 0x17, 0x13}, tx: ops{0x21, 0x27, 0x23}, sat: 0x4E, status: 0xF7,
			caps: Caps{
				Readback: true, Modes: modes, Reply: 300 * time.Millisecond, MinInterval: 20 * time.Millisecond,
				Receive: []Range{{100e3, 30e6}, {36e6, 76e6}, {108e6, 174e6}, {420e6, 512e6}},
			},
		}),
		row("yaesu-ft736r", "ft-736r", "Yaesu FT-736R", 4800, ft847Spec{
			main: ops{0x01, 0x07, 0}, rx: ops{0x1E, 0x17, 0}, tx: ops{0x2E, 0x27, 0}, sat: 0x0E, giga: true, byteGap: 30 * time.Millisecond,
			caps: Caps{
				Modes: []Mode{LSB, USB, CW, FM}, Reply: 400 * time.Millisecond, MinInterval: 50 * time.Millisecond,
				Receive: []Range{{50e6, 54e6}, {144e6, 148e6}, {430e6, 450e6}, {1240e6, 1299_999_990}},
			},
		}),
	}
}
