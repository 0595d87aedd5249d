package radio

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ft991 drives a Yaesu FT-991 or FT-991A: half duplex, VFO A receives and
// VFO B transmits with split.
//
// "TX;" is a question here and keys a Kenwood. So the driver asks for the
// radio's name first, and again whenever the radio has been silent, and sends
// nothing else before the right one has answered.
type ft991 struct {
	caps  Caps
	name  string
	wire  *ascii
	known bool // the radio has answered with its name
}

// allowsFT991 reports whether a command may ever be sent. TX1 and TX2 (keys),
// KY and KM (CW text), PB and VT (voice memory), AC (tuner) and PS are not here.
func allowsFT991(c string) bool {
	switch c {
	case "ID", "FA", "FB", "MD0", "TX", "TX0", "FT", "FT2", "FT3", "OI", "AB":
		return true
	}
	switch {
	case len(c) == 11 && (strings.HasPrefix(c, "FA") || strings.HasPrefix(c, "FB")):
		return isDigits(c[2:])
	case len(c) == 4 && strings.HasPrefix(c, "MD0"):
		return ft991Modes()[c[3]] != ""
	}
	return false
}

func ft991Modes() map[byte]Mode {
	return map[byte]Mode{'1': LSB, '2': USB, '3': CW, '4': FM, '5': AM, '6': RTTY, '7': CWR, '8': LSBD, '9': RTTYR, 'A': FMD, 'B': FMN, 'C': USBD}
}

func newFT991(name string, caps Caps, link Link) *ft991 {
	f := &ft991{caps: caps, name: name}
	f.wire = &ascii{link: link, allowed: allowsFT991, reply: caps.Reply, gap: caps.MinInterval, note: func(msg string) (m Move, ok bool) {
		switch {
		case strings.HasPrefix(msg, "FA"), strings.HasPrefix(msg, "FB"):
			hz, err := asciiHz(msg[2:], 9)
			m, ok = Move{FrequencyHz: hz}, err == nil
		case len(msg) == 4 && strings.HasPrefix(msg, "MD0"):
			m, ok = Move{Mode: ft991Modes()[msg[3]]}, true
		}
		return m, ok
	}}
	return f
}

// Moves tells what an operator did at the radio; see Watcher.
func (f *ft991) Moves() []Move { return f.wire.takeMoves() }

// do makes sure of the radio's name, runs g, and says what was being done.
func (f *ft991) do(ctx context.Context, doing string, g func() error) error {
	err := f.identify(ctx)
	if err == nil {
		err = g()
	}
	if errors.Is(err, ErrSilent) {
		f.known = false // perhaps another radio has been plugged in
	}
	if err != nil {
		return fmt.Errorf("%s: %s: %w", f.name, doing, err)
	}
	return nil
}

func (f *ft991) identify(ctx context.Context) error {
	if f.known {
		return nil
	}
	id, err := f.wire.read(ctx, "ID")
	if err != nil {
		return err
	}
	if id != "0570" && id != "0670" {
		return fmt.Errorf("the radio calls itself %q, an FT-991 0570 and an FT-991A 0670: choose the driver for the radio that is there", printable(id))
	}
	f.known = true
	return nil
}

// Status reads both VFOs, split and whether the transmitter is keyed, by CAT
// or otherwise.
func (f *ft991) Status(ctx context.Context) (st Status, err error) {
	err = f.do(ctx, "read status", func() error {
		if st.Transmitting, err = f.transmitting(ctx); err != nil {
			return err
		}
		if st.Downlink.FrequencyHz, err = f.readHz(ctx, "FA"); err != nil {
			return err
		}
		if st.Downlink.Mode, err = f.readMode(ctx); err != nil {
			return err
		}
		split, err := f.wire.read(ctx, "FT")
		if err != nil || split != "1" {
			return err
		}
		st.Uplink, err = f.other(ctx)
		return err
	})
	return st, err
}

func (f *ft991) transmitting(ctx context.Context) (bool, error) {
	s, err := f.wire.read(ctx, "TX")
	return s != "0", err
}

func (f *ft991) readHz(ctx context.Context, vfo string) (int64, error) {
	s, err := f.wire.read(ctx, vfo)
	if err != nil {
		return 0, err
	}
	return asciiHz(s, 9)
}

func (f *ft991) readMode(ctx context.Context) (Mode, error) {
	s, err := f.wire.read(ctx, "MD0")
	if err != nil {
		return "", err
	}
	return ft991Modes()[s[0]], nil
}

// other reads VFO B: OI is 3 digits of memory, 9 of frequency, sign and 4 of
// clarifier, two switches, mode.
func (f *ft991) other(ctx context.Context) (Tuning, error) {
	s, err := f.wire.read(ctx, "OI")
	if err != nil {
		return Tuning{}, err
	}
	if len(s) < 20 {
		return Tuning{}, fmt.Errorf("answer OI%s is shorter than 20 characters", printable(s))
	}
	hz, err := asciiHz(s[3:], 9)
	return Tuning{hz, ft991Modes()[s[19]]}, err
}

// setHz sets a frequency and asks for it in the same write.
func (f *ft991) setHz(ctx context.Context, vfo string, hz int64) (got int64, err error) {
	digits, err := formatDigits(hz, 9)
	if err != nil {
		return 0, err
	}
	for range 2 {
		s, err := f.wire.ask(ctx, vfo+digits, vfo)
		if errors.Is(err, ErrSilent) || errors.Is(err, errGarbled) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if got, err = asciiHz(s, 9); err != nil {
			return 0, err
		}
		if f.caps.nearest(got) == hz {
			return got, nil
		}
	}
	if got == 0 {
		return 0, fmt.Errorf("%w to %s%s", ErrSilent, vfo, digits)
	}
	return got, fmt.Errorf("asked for %s, reads %s: %w", formatHz(hz), formatHz(got), ErrMismatch)
}

func (f *ft991) setMode(ctx context.Context, m Mode) error {
	var code byte
	for c, name := range ft991Modes() {
		if name == m {
			code = c
		}
	}
	if code == 0 {
		return f.caps.checkMode(m)
	}
	s, err := f.wire.ask(ctx, "MD0"+string(code), "MD0")
	if errors.Is(err, ErrSilent) || errors.Is(err, errGarbled) {
		s, err = f.wire.ask(ctx, "MD0"+string(code), "MD0")
	}
	if err != nil {
		return err
	}
	if s[0] != code {
		return fmt.Errorf("asked for mode %s, reads number %q: %w", m, printable(s), ErrMismatch)
	}
	return nil
}

// receiving refuses while the radio transmits: VFO A cannot be retuned then.
func (f *ft991) receiving(ctx context.Context) error {
	keyed, err := f.transmitting(ctx)
	if err == nil && keyed {
		err = ErrTransmitting
	}
	return err
}

// Tune sets VFO A or B. VFO B, the uplink, can be retuned while the radio
// transmits.
func (f *ft991) Tune(ctx context.Context, p Path, hz int64) (got int64, err error) {
	vfo, err := vfoOf(p)
	if err == nil {
		err = f.caps.checkFrequency(hz)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: tune %s to %s: %w", f.name, printable(string(p)), formatHz(hz), err)
	}
	err = f.do(ctx, fmt.Sprintf("tune %s to %s", p, formatHz(hz)), func() error {
		if vfo == 0 {
			if err := f.receiving(ctx); err != nil {
				return err
			}
		}
		got, err = f.setHz(ctx, [...]string{"FA", "FB"}[vfo], f.caps.nearest(hz))
		return err
	})
	return got, err
}

// SetMode sets the mode of one VFO.
func (f *ft991) SetMode(ctx context.Context, p Path, m Mode) error {
	vfo, err := vfoOf(p)
	if err == nil {
		err = f.caps.checkMode(m)
	}
	if err != nil {
		return fmt.Errorf("%s: set %s mode: %w", f.name, printable(string(p)), err)
	}
	return f.do(ctx, fmt.Sprintf("set %s mode %s", p, m), func() error {
		if err := f.receiving(ctx); err != nil {
			return err
		}
		if vfo == 0 {
			return f.setMode(ctx, m)
		}
		up, err := f.other(ctx)
		if err != nil {
			return err
		}
		return f.fillB(ctx, Tuning{up.FrequencyHz, m})
	})
}

// fillB sets frequency and mode of VFO B. There is no command for its mode, so
// VFO A is set, copied, and put back.
func (f *ft991) fillB(ctx context.Context, up Tuning) error {
	var before Tuning
	var err error
	if before.FrequencyHz, err = f.readHz(ctx, "FA"); err != nil {
		return err
	}
	if before.Mode, err = f.readMode(ctx); err != nil {
		return err
	}
	err = f.fillA(ctx, up)
	if err == nil {
		_, err = f.wire.ask(ctx, "AB", "FB")
	}
	err = errors.Join(err, f.fillA(context.WithoutCancel(ctx), before))
	if err != nil {
		return err
	}
	got, err := f.other(ctx)
	if err == nil && (f.caps.nearest(got.FrequencyHz) != up.FrequencyHz || up.Mode != "" && got.Mode != up.Mode) {
		err = fmt.Errorf("uplink %s %s reads %s %s: %w", formatHz(up.FrequencyHz), up.Mode, formatHz(got.FrequencyHz), got.Mode, ErrMismatch)
	}
	return err
}

func (f *ft991) fillA(ctx context.Context, t Tuning) error {
	if _, err := f.setHz(ctx, "FA", f.caps.nearest(t.FrequencyHz)); err != nil {
		return err
	}
	if t.Mode == "" {
		return nil
	}
	return f.setMode(ctx, t.Mode)
}

// Prepare sets VFO A, VFO B, and split when there is an uplink.
func (f *ft991) Prepare(ctx context.Context, down, up Tuning) error {
	if err := checkPair(f.caps, down, up); err != nil {
		return fmt.Errorf("%s: prepare: %w", f.name, err)
	}
	return f.do(ctx, "prepare", func() error {
		if err := f.receiving(ctx); err != nil {
			return err
		}
		if up != (Tuning{}) {
			up.FrequencyHz = f.caps.nearest(up.FrequencyHz)
			if err := f.fillB(ctx, up); err != nil {
				return err
			}
			s, err := f.wire.ask(ctx, "FT3", "FT")
			if err == nil && s != "1" {
				err = fmt.Errorf("split reads %q: %w", printable(s), ErrMismatch)
			}
			if err != nil {
				return fmt.Errorf("transmit on VFO B: %w", err)
			}
		}
		if down == (Tuning{}) {
			return nil
		}
		return f.fillA(ctx, down)
	})
}

// Halt makes sure that the radio receives. Here too the radio's name comes
// first: TX0, which ends a transmission on this radio, begins one on a Kenwood.
func (f *ft991) Halt(ctx context.Context) error {
	return f.do(ctx, "stop transmitting", func() error {
		receive := func(ctx context.Context) error {
			_, err := f.wire.ask(ctx, "TX0", "TX")
			return err
		}
		return untilReceiving(ctx, f.transmitting, receive)
	})
}

func ft991Models() []Model {
	caps := Caps{
		Readback: true, StepHz: 1, TuneWhileTX: true, Reply: 300 * time.Millisecond, MinInterval: 10 * time.Millisecond,
		Receive: []Range{{30e3, 56e6}, {76e6, 164e6}, {420e6, 470e6}},
		Modes:   []Mode{LSB, USB, CW, CWR, AM, RTTY, RTTYR, FM, FMN, LSBD, USBD, FMD},
	}
	row := func(name, short, title string) Model {
		return Model{Name: name, Aliases: []string{short}, Title: title, Baud: 38400, Caps: caps,
			New: func(l Link) Radio { return newFT991(short, caps, l) }}
	}
	return []Model{
		row("yaesu-ft991", "ft-991", "Yaesu FT-991"),
		row("yaesu-ft991a", "ft-991a", "Yaesu FT-991A"),
	}
}
