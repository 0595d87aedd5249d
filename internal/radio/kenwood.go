package radio

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// kenwoodReply is longer than elsewhere: a TS-2000 that is busy may take
// 450 ms to answer FA;.
const kenwoodReply = 500 * time.Millisecond

// kenwoodSpec is what one Kenwood model's CAT can do.
type kenwoodSpec struct {
	caps Caps
	sat  bool // SA: satellite mode, FA the downlink and FB the uplink
	rx   bool // RX; is answered
}

// allows reports whether a command may ever be sent: what reads, what tunes,
// and RX. TX, KY (CW text), PB (voice memory), AC (tuner), PS (power), SR and
// EX are not here.
func (s kenwoodSpec) allows(c string) bool {
	switch {
	case c == "ID", c == "IF", c == "FA", c == "MD", c == "RX":
		return true
	case strings.HasPrefix(c, "FA"):
		return len(c) == 13 && isDigits(c[2:])
	case strings.HasPrefix(c, "MD"):
		return len(c) == 3 && c[2] >= '1' && c[2] <= '9'
	case !s.sat:
		return false
	case c == "FB", c == "SA":
		return true
	case strings.HasPrefix(c, "FB"):
		return len(c) == 13 && isDigits(c[2:])
	case strings.HasPrefix(c, "SA"):
		return len(c) == 9 && isDigits(c[2:])
	}
	return false
}

func kenwoodModes() map[byte]Mode {
	return map[byte]Mode{'1': LSB, '2': USB, '3': CW, '4': FM, '5': AM, '6': RTTY, '7': CWR, '9': RTTYR}
}

// kenwood drives a TS-2000 or TS-790. FA is the downlink; the uplink is FB in
// the TS-2000's satellite mode. A TS-790 has no satellite mode on its wire: it
// takes one path, the one that was prepared or tuned first.
type kenwood struct {
	kenwoodSpec
	name   string
	wire   *ascii
	on     bool // satellite mode, as last read
	upMode Mode
	only   Path // of a model without satellite mode
}

func newKenwood(name string, s kenwoodSpec, link Link) *kenwood {
	k := &kenwood{kenwoodSpec: s, name: name}
	k.wire = &ascii{link: link, allowed: s.allows, reply: s.caps.Reply, gap: s.caps.MinInterval, note: func(msg string) (m Move, ok bool) {
		m, ok = kenwoodMove(msg)
		if ok {
			k.upMode = ""
		}
		return m, ok
	}}
	return k
}

// kenwoodMove reads what the radio announces when "auto information" is on.
func kenwoodMove(msg string) (Move, bool) {
	switch {
	case strings.HasPrefix(msg, "FA"), strings.HasPrefix(msg, "FB"), strings.HasPrefix(msg, "IF"):
		hz, err := asciiHz(msg[2:], 11)
		return Move{FrequencyHz: hz}, err == nil
	case len(msg) == 3 && strings.HasPrefix(msg, "MD"):
		return Move{Mode: kenwoodModes()[msg[2]]}, true
	}
	return Move{}, false
}

// Moves tells what an operator did at the radio; see Watcher.
func (k *kenwood) Moves() []Move { return k.wire.takeMoves() }

// kenwoodIF is an answer to IF;.
type kenwoodIF struct {
	tx   bool
	mode Mode
}

// parseKenwoodIF reads the answer to IF; without its first two letters. The
// positions are those of the TS-2000's manual; a real one sends blanks in the
// step field, so only what is used is checked.
func parseKenwoodIF(s string) (kenwoodIF, error) {
	if len(s) < 35 {
		return kenwoodIF{}, fmt.Errorf("status answer %q is shorter than 35 characters", printable(s))
	}
	return kenwoodIF{tx: s[26] != '0', mode: kenwoodModes()[s[27]]}, nil
}

func (k *kenwood) status(ctx context.Context) (kenwoodIF, error) {
	s, err := k.wire.read(ctx, "IF")
	if err != nil {
		return kenwoodIF{}, err
	}
	return parseKenwoodIF(s)
}

// satellite reads SA; and returns its seven switches.
func (k *kenwood) satellite(ctx context.Context) (string, error) {
	s, err := k.wire.read(ctx, "SA")
	if err != nil {
		return "", err
	}
	if len(s) < 7 || !isDigits(s[:7]) {
		return "", fmt.Errorf("satellite answer %q does not begin with seven digits", printable(s))
	}
	if on := s[0] == '1'; on != k.on {
		k.on, k.upMode = on, ""
	}
	return s[:7], nil
}

// Status reads the radio. The uplink's mode is the one that was set last, and
// empty when an operator may have changed it: to read it the radio would have
// to give the controls to its sub band.
func (k *kenwood) Status(ctx context.Context) (st Status, err error) {
	defer func() { err = failure(k.name, "read status", err) }()
	is, err := k.status(ctx)
	if err != nil {
		return st, err
	}
	st.Transmitting = is.tx
	if k.sat {
		if _, err := k.satellite(ctx); err != nil {
			return st, err
		}
		st.Satellite = k.on
	}
	hz, err := k.readHz(ctx, "FA")
	if err != nil {
		return st, err
	}
	if k.only == Uplink {
		st.Uplink = Tuning{hz, is.mode}
		return st, nil
	}
	st.Downlink = Tuning{hz, is.mode}
	if st.Satellite {
		st.Uplink.Mode = k.upMode
		st.Uplink.FrequencyHz, err = k.readHz(ctx, "FB")
	}
	return st, err
}

func (k *kenwood) readHz(ctx context.Context, vfo string) (int64, error) {
	s, err := k.wire.read(ctx, vfo)
	if err != nil {
		return 0, err
	}
	return asciiHz(s, 11)
}

// setHz sets a frequency, asks for the radio's name to see an error, and reads
// the frequency back.
func (k *kenwood) setHz(ctx context.Context, vfo string, hz int64) (got int64, err error) {
	digits, err := formatDigits(hz, 11)
	if err != nil {
		return 0, err
	}
	for range 2 {
		_, err := k.wire.ask(ctx, vfo+digits, "ID")
		if err != nil && !errors.Is(err, ErrSilent) && !errors.Is(err, errGarbled) {
			return 0, err
		}
		var readErr error
		if got, readErr = k.readHz(ctx, vfo); readErr != nil {
			return 0, errors.Join(err, readErr)
		}
		if k.caps.nearest(got) == hz {
			return got, nil
		}
	}
	return got, fmt.Errorf("asked for %s, reads %s: %w", formatHz(hz), formatHz(got), ErrMismatch)
}

func (k *kenwood) setMode(ctx context.Context, m Mode) error {
	var code byte
	for c, name := range kenwoodModes() {
		if name == m {
			code = c
		}
	}
	if code == 0 {
		return k.caps.checkMode(m)
	}
	got := ""
	for range 2 {
		_, err := k.wire.ask(ctx, "MD"+string(code), "ID")
		if err != nil && !errors.Is(err, ErrSilent) && !errors.Is(err, errGarbled) {
			return err
		}
		var readErr error
		if got, readErr = k.wire.read(ctx, "MD"); readErr != nil {
			return errors.Join(err, readErr)
		}
		if got[0] == code {
			return nil
		}
	}
	return fmt.Errorf("asked for mode %s, reads number %q: %w", m, printable(got), ErrMismatch)
}

// vfo is the letter pair of a path.
func (k *kenwood) vfo(p Path) (string, error) {
	switch {
	case p != Downlink && p != Uplink:
		return "", unknownPath(p)
	case !k.sat:
		return "FA", onePath(&k.only, p)
	case p == Uplink && !k.on:
		return "", fmt.Errorf("satellite mode is off, so FB is no uplink: prepare the radio for a pass first: %w", ErrUnsupported)
	case p == Uplink:
		return "FB", nil
	}
	return "FA", nil
}

// Tune sets one frequency.
func (k *kenwood) Tune(ctx context.Context, p Path, hz int64) (int64, error) {
	got, err := k.tune(ctx, p, hz)
	return got, failure(k.name, fmt.Sprintf("tune %s to %s", p, formatHz(hz)), err)
}

func (k *kenwood) tune(ctx context.Context, p Path, hz int64) (int64, error) {
	if err := k.caps.checkFrequency(hz); err != nil {
		return 0, err
	}
	if k.sat && p == Uplink && !k.on {
		if _, err := k.satellite(ctx); err != nil {
			return 0, err
		}
	}
	vfo, err := k.vfo(p)
	if err != nil {
		return 0, err
	}
	return k.setHz(ctx, vfo, k.caps.nearest(hz))
}

// SetMode sets the mode of one path. For the uplink the sub band has the
// controls while that happens.
func (k *kenwood) SetMode(ctx context.Context, p Path, m Mode) error {
	return failure(k.name, fmt.Sprintf("set %s mode %s", p, printable(string(m))), k.pathMode(ctx, p, m))
}

func (k *kenwood) pathMode(ctx context.Context, p Path, m Mode) error {
	if err := k.caps.checkMode(m); err != nil {
		return err
	}
	sa := ""
	if k.sat {
		var err error
		if sa, err = k.satellite(ctx); err != nil {
			return err
		}
	}
	if _, err := k.vfo(p); err != nil {
		return err
	}
	if !k.on {
		return k.setMode(ctx, m)
	}
	return k.inControl(ctx, p, sa, func() error { return k.setMode(ctx, m) }, m)
}

// inControl runs f while a side has the controls, and gives them back.
func (k *kenwood) inControl(ctx context.Context, p Path, sa string, f func() error, m Mode) error {
	want := byte('0')
	if p == Uplink {
		want = '1'
	}
	if sa[3] != want {
		if err := k.control(ctx, sa, want); err != nil {
			return err
		}
	}
	err := f()
	if p == Uplink {
		k.upMode = ""
		if err == nil {
			k.upMode = m
		}
	}
	if sa[3] != want {
		err = errors.Join(err, k.control(context.WithoutCancel(ctx), sa, sa[3]))
	}
	return err
}

func (k *kenwood) control(ctx context.Context, sa string, side byte) error {
	return k.setSatellite(ctx, sa[:3]+string(side)+sa[4:])
}

// setSatellite writes the seven switches and reads them back.
func (k *kenwood) setSatellite(ctx context.Context, sa string) error {
	if _, err := k.wire.ask(ctx, "SA"+sa, "ID"); err != nil && !errors.Is(err, ErrSilent) {
		return fmt.Errorf("satellite mode %s (is the radio in memory mode or in a menu?): %w", sa, err)
	}
	got, err := k.satellite(ctx)
	if err == nil && got != sa {
		err = fmt.Errorf("satellite mode %s reads back %s: %w", sa, got, ErrMismatch)
	}
	return err
}

// Prepare sets up a pass. The switches of satellite mode are: on, the channel
// that was there, main down and sub up, main in control, TRACE off (it would
// move the other side by itself), VFO.
func (k *kenwood) Prepare(ctx context.Context, down, up Tuning) error {
	return failure(k.name, "prepare", k.prepare(ctx, down, up))
}

func (k *kenwood) prepare(ctx context.Context, down, up Tuning) error {
	zero := Tuning{}
	if err := checkPair(k.caps, down, up); err != nil {
		return err
	}
	is, err := k.status(ctx)
	if err != nil {
		return err
	}
	if is.tx {
		return ErrTransmitting
	}
	if !k.sat {
		t, p, err := onlyOne(down, up)
		if err != nil {
			return err
		}
		k.only = p
		return k.prepareSide(ctx, "FA", t)
	}
	sa, err := k.satellite(ctx)
	if err != nil {
		return err
	}
	if up != zero || k.on {
		want := "1" + sa[1:2] + "10000"
		if sa != want {
			if err := k.setSatellite(ctx, want); err != nil {
				return err
			}
		}
		sa = want
	}
	if err := k.prepareSide(ctx, "FA", down); err != nil || up == zero {
		return err
	}
	if _, err := k.setHz(ctx, "FB", k.caps.nearest(up.FrequencyHz)); err != nil {
		return fmt.Errorf("uplink %s: %w", formatHz(up.FrequencyHz), err)
	}
	if up.Mode != "" {
		if err := k.inControl(ctx, Uplink, sa, func() error { return k.setMode(ctx, up.Mode) }, up.Mode); err != nil {
			return fmt.Errorf("uplink: %w", err)
		}
	}
	if down == zero {
		return nil
	}
	got, err := k.readHz(ctx, "FA") // TRACE, had it been on, would have moved it
	if err == nil && k.caps.nearest(got) != k.caps.nearest(down.FrequencyHz) {
		err = fmt.Errorf("downlink is set to %s and reads %s: %w", formatHz(down.FrequencyHz), formatHz(got), ErrMismatch)
	}
	return err
}

func (k *kenwood) prepareSide(ctx context.Context, vfo string, t Tuning) error {
	if t == (Tuning{}) {
		return nil
	}
	if _, err := k.setHz(ctx, vfo, k.caps.nearest(t.FrequencyHz)); err != nil {
		return fmt.Errorf("%s: %w", formatHz(t.FrequencyHz), err)
	}
	if t.Mode == "" {
		return nil
	}
	return k.setMode(ctx, t.Mode)
}

// Halt makes sure that the radio receives.
func (k *kenwood) Halt(ctx context.Context) error {
	keyed := func(ctx context.Context) (bool, error) {
		s, err := k.wire.ask(ctx, "IF")
		if err != nil {
			return true, err
		}
		is, err := parseKenwoodIF(s)
		return is.tx, err
	}
	receive := func(ctx context.Context) error {
		if k.rx {
			_, err := k.wire.ask(ctx, "RX")
			return err
		}
		return k.wire.write(ctx, "RX")
	}
	return failure(k.name, "stop transmitting", untilReceiving(ctx, keyed, receive))
}

// checkPair checks both tunings of a pass before the first byte.
func checkPair(c Caps, down, up Tuning) error {
	for _, t := range []struct {
		p Path
		t Tuning
	}{{Downlink, down}, {Uplink, up}} {
		if err := c.checkTuning(t.t); err != nil {
			return fmt.Errorf("%s: %w", t.p, err)
		}
	}
	if c.Satellite && down != (Tuning{}) && up != (Tuning{}) && c.band(down.FrequencyHz) == c.band(up.FrequencyHz) {
		return fmt.Errorf("downlink %s and uplink %s are on the same band, which the two sides of this radio cannot share: use one path, or a second radio: %w",
			formatHz(down.FrequencyHz), formatHz(up.FrequencyHz), ErrUnsupported)
	}
	return nil
}

func kenwoodModels() []Model {
	modes := []Mode{LSB, USB, CW, CWR, AM, RTTY, RTTYR, FM}
	row := func(name, short, title string, baud int, stop2 bool, s kenwoodSpec) Model {
		s.caps.Reply, s.caps.Readback, s.caps.StepHz = kenwoodReply, true, 1
		return Model{
			Name: name, Aliases: []string{short}, Title: title, Baud: baud, Stop2: stop2, Caps: s.caps,
			New: func(l Link) Radio { return newKenwood(short, s, l) },
		}
	}
	return []Model{
		row("kenwood-ts2000", "ts-2000", "Kenwood TS-2000", 57600, false, kenwoodSpec{sat: true, rx: true, caps: Caps{
			FullDuplex: true, Satellite: true, MinInterval: 20 * time.Millisecond, Modes: modes,
			Receive: []Range{{30e3, 60e6}, {118e6, 174e6}, {220e6, 512e6}, {1240e6, 1300e6}},
		}}),
		row("kenwood-ts790", "ts-790", "Kenwood TS-790", 4800, true, kenwoodSpec{caps: Caps{
			MinInterval: 50 * time.Millisecond, Modes: []Mode{LSB, USB, CW, FM},
			Receive: []Range{{144e6, 148e6}, {430e6, 450e6}, {1240e6, 1300e6}},
		}}),
	}
}
