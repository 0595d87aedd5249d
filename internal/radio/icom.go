package radio

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// icomSpec is what one Icom model's CI-V can do. False means refused or
// unknown.
type icomSpec struct {
	addr      byte
	caps      Caps
	satellite []byte // command that reads or, with 00 or 01, sets satellite mode
	dual      bool   // MAIN and SUB; else VFO A and B with split
	swapped   bool   // 07 D0 means SUB and 07 D1 MAIN while satellite mode is on
	whichBand bool   // 07 D2 reads which band is selected
	byVFO     bool   // 25 and 26 reach the selected and the other VFO outside satellite mode
	filter    bool   // mode frames carry a filter number
	data      bool   // 1A 06: data mode
	ptt       bool   // 1C 00 reads whether the transmitter is keyed
	txHz      bool   // 1C 03 reads the frequency that would be transmitted; asked once where unsure
	short     bool   // frequency data may come without the 1 GHz and 100 MHz digits
}

// Commands, with Icom's numbers.
const (
	civReadHz   = 0x03
	civReadMode = 0x04
	civSetHz    = 0x05
	civSetMode  = 0x06
	civSelect   = 0x07
	civSplit    = 0x0F
	civFeature  = 0x16
	civMore     = 0x1A
	civTransmit = 0x1C
	civVFOHz    = 0x25
	civVFOMode  = 0x26

	selVFOA, selVFOB = 0x00, 0x01
	selSwap          = 0xB0
	selMain, selSub  = 0xD0, 0xD1
	selWhich         = 0xD2

	txState  = 0x00 // 1C 00
	txHz     = 0x03 // 1C 03
	off      = 0x00
	on       = 0x01
	filter1  = 0x01 // the widest
	dataMode = 0x06 // 1A 06
)

// allows reports whether a request may ever leave for this model. It is the
// last thing between the driver and the wire, and deliberately dull: what
// reads, what tunes, and one frame about transmitting, which ends it. PTT on,
// CW text, voice memories, the tuner and the power switch are not here.
func (s icomSpec) allows(b []byte) bool {
	arg := func(n int) bool { return len(b) == n }
	if len(b) == 0 {
		return false
	}
	switch b[0] {
	case civReadHz, civReadMode:
		return arg(1)
	case civSetHz:
		return (arg(6) || s.short && arg(5)) && digits(b[1:])
	case civSetMode:
		return arg(2) && !s.filter || arg(3) && b[2] >= 1 && b[2] <= 3
	case civSelect:
		if !arg(2) {
			return false
		}
		switch b[1] {
		case selMain, selSub:
			return s.dual
		case selWhich:
			return s.whichBand
		case selSwap:
			return s.dual
		case selVFOA, selVFOB:
			return !s.dual
		}
		return false
	case civSplit:
		return !s.dual && (arg(1) || arg(2) && b[1] <= on)
	case civFeature, civMore:
		if s.data && b[0] == civMore && len(b) >= 2 && b[1] == dataMode {
			return arg(2) || arg(4) && b[2] <= on && b[3] <= 3
		}
		n := len(s.satellite)
		return n > 0 && len(b) >= n && slices.Equal(b[:n], s.satellite) && (arg(n) || arg(n+1) && b[n] <= on)
	case civTransmit:
		return s.ptt && arg(2) && b[1] == txState ||
			s.ptt && arg(3) && b[1] == txState && b[2] == off ||
			s.txHz && arg(2) && b[1] == txHz
	case civVFOHz:
		return s.byVFO && len(b) >= 2 && b[1] <= 1 && (arg(2) || arg(7) && digits(b[2:]))
	case civVFOMode:
		return s.byVFO && len(b) >= 2 && b[1] <= 1 && (arg(2) || arg(5) && b[3] <= on && b[4] >= 1 && b[4] <= 3)
	}
	return false
}

func digits(b []byte) bool {
	for _, x := range b {
		if x>>4 > 9 || x&0x0F > 9 {
			return false
		}
	}
	return true
}

// A trit is a fact that may not be known yet.
type trit int

const (
	unknown trit = iota
	no
	yes
)

func tritOf(b bool) trit {
	if b {
		return yes
	}
	return no
}

// icom drives one Icom transceiver. The path downlink is MAIN (or VFO A), the
// uplink SUB in satellite mode (or VFO B with split).
type icom struct {
	icomSpec
	name     string
	wire     *civ
	sat      trit // satellite mode or, on a model with VFOs, split; as last read
	selected Path // which side has the controls; "" when not known
	upMode   Mode // of the uplink as last read; "" once an operator touched something
	noTxHz   bool // this radio's firmware refuses 1C 03
	hzBytes  int  // of frequency data, as this radio sends it
}

func newIcom(name string, s icomSpec, link Link) *icom {
	r := &icom{icomSpec: s, name: name, hzBytes: 5}
	r.wire = &civ{link: link, rig: s.addr, allowed: s.allows, reply: s.caps.Reply, gap: s.caps.MinInterval, touched: func(Move) {
		r.upMode = ""
		if !r.whichBand {
			r.selected = ""
		}
	}}
	return r
}

// Moves tells what an operator did at the radio; see Watcher.
func (r *icom) Moves() []Move { return r.wire.takeMoves() }

// Status reads both paths. The uplink's frequency comes from the radio's own
// statement of what it would transmit, so that the operator's selected band
// stays where it is; its mode is the one read when the uplink was last
// selected, and empty when that may have changed since.
func (r *icom) Status(ctx context.Context) (Status, error) {
	st, err := r.status(ctx)
	return st, failure(r.name, "read status", err)
}

func (r *icom) status(ctx context.Context) (st Status, err error) {
	if st.Transmitting, err = r.transmitting(ctx); err != nil {
		return st, err
	}
	pair, err := r.readPair(ctx)
	if err != nil {
		return st, err
	}
	st.Satellite = pair && r.dual && r.satellite != nil
	if !r.dual && r.byVFO {
		return r.statusByVFO(ctx, st, pair)
	}
	if st.Downlink, err = r.side(ctx, Downlink); err != nil || !pair {
		return st, err
	}
	hz, err := r.transmitHz(ctx)
	switch {
	case err != nil:
		return st, err
	case hz != 0:
		st.Uplink = Tuning{hz, r.upMode}
	default:
		st.Uplink, err = r.side(ctx, Uplink)
	}
	return st, err
}

// statusByVFO reads both VFOs of a model that can do so without selecting.
func (r *icom) statusByVFO(ctx context.Context, st Status, split bool) (Status, error) {
	var err error
	if st.Downlink.FrequencyHz, err = r.readHz(ctx, civVFOHz, 0); err != nil {
		return st, err
	}
	if st.Downlink.Mode, err = r.readMode(ctx, false, 0); err != nil || !split {
		return st, err
	}
	if st.Uplink.FrequencyHz, err = r.readHz(ctx, civVFOHz, 1); err != nil {
		return st, err
	}
	st.Uplink.Mode, err = r.readMode(ctx, false, 1)
	return st, err
}

// side reads one path, selecting it for as long as that takes.
func (r *icom) side(ctx context.Context, p Path) (t Tuning, err error) {
	err = r.on(ctx, p, func() error {
		if t.FrequencyHz, err = r.readHz(ctx, r.hzCommand()...); err != nil {
			return err
		}
		t.Mode, err = r.readMode(ctx, r.plain(), 0)
		return err
	})
	return t, err
}

// transmitHz is the frequency that the radio says it would transmit, 0 if this
// model does not say.
func (r *icom) transmitHz(ctx context.Context) (int64, error) {
	if !r.txHz || r.noTxHz {
		return 0, nil
	}
	hz, err := r.readHz(ctx, civTransmit, txHz)
	if errors.Is(err, ErrRefused) {
		r.noTxHz = true
		return 0, nil
	}
	return hz, err
}

func (r *icom) transmitting(ctx context.Context) (bool, error) {
	if !r.ptt {
		return false, nil
	}
	b, err := r.wire.read(ctx, civTransmit, txState)
	return isKeyed(b), err
}

// isKeyed reads an answer to 1C 00: anything but a plain "receiving" counts as
// transmitting.
func isKeyed(b []byte) bool { return len(b) != 1 || b[0] != off }

// pairCommand is the request that reads whether two paths are in use:
// satellite mode or split. Nil: the model does not tell.
func (r *icom) pairCommand() []byte {
	if r.dual {
		return r.satellite
	}
	return []byte{civSplit}
}

func (r *icom) readPair(ctx context.Context) (bool, error) {
	cmd := r.pairCommand()
	if cmd == nil {
		return r.sat == yes, nil
	}
	b, err := r.wire.read(ctx, cmd...)
	if err != nil {
		return false, err
	}
	if len(b) != 1 || r.dual && b[0] > on {
		return false, fmt.Errorf("answer % x to % x", b, cmd)
	}
	now := tritOf(b[0] == on)
	if now != r.sat {
		r.upMode = ""
	}
	r.sat = now
	return now == yes, nil
}

// pair is readPair where it matters only that it was right recently.
func (r *icom) pair(ctx context.Context) (bool, error) {
	if r.sat != unknown {
		return r.sat == yes, nil
	}
	return r.readPair(ctx)
}

// plain reports whether frequency and mode must be set with the commands for
// what is selected: always in satellite mode, which refuses 26.
func (r *icom) plain() bool { return !r.byVFO || r.dual && r.sat == yes }

func (r *icom) hzCommand() []byte {
	if r.plain() {
		return []byte{civReadHz}
	}
	return []byte{civVFOHz, 0}
}

func (r *icom) readHz(ctx context.Context, cmd ...byte) (int64, error) {
	b, err := r.wire.read(ctx, cmd...)
	if err != nil {
		return 0, err
	}
	hz, err := decodeBCD(b)
	if err != nil || !r.short {
		return hz, err
	}
	r.hzBytes = min(len(b), 5)
	if len(b) == 4 { // the leading digits are whatever makes it one of the bands
		for _, band := range r.caps.Receive {
			if full := band.MinHz/1e8*1e8 + hz; full >= band.MinHz && full <= band.MaxHz {
				return full, nil
			}
		}
	}
	return hz, nil
}

// readMode reads the mode of what is selected (plain) or of a VFO. A mode this
// program has no name for is not an error: it reads as "".
func (r *icom) readMode(ctx context.Context, plain bool, vfo byte) (Mode, error) {
	if !plain {
		b, err := r.wire.read(ctx, civVFOMode, vfo)
		if err != nil {
			return "", err
		}
		if len(b) < 2 {
			return "", fmt.Errorf("mode answer % x is too short", b)
		}
		m, _ := icomMode(b[0], b[1] != off)
		return m, nil
	}
	b, err := r.wire.read(ctx, civReadMode)
	if err != nil {
		return "", err
	}
	data := false
	if r.data {
		d, err := r.wire.read(ctx, civMore, dataMode)
		if err != nil {
			return "", err
		}
		data = d[0] != off
	}
	m, _ := icomMode(b[0], data)
	if !r.filter && m == FM && len(b) > 1 && b[1] == 2 {
		m = FMN // IC-910H: narrow FM is filter 2
	}
	return m, nil
}

// on runs f with path p selected and gives the selection back afterwards: the
// radio may be under an operator's hand. Where the radio can say what is
// selected it is asked; else the driver's memory stands until an announcement
// casts doubt on it.
func (r *icom) on(ctx context.Context, p Path, f func() error) error {
	before := r.selected
	if r.whichBand {
		b, err := r.wire.read(ctx, civSelect, selWhich)
		switch {
		case errors.Is(err, ErrRefused):
			r.whichBand = false // this radio's firmware does not know the question
		case err != nil:
			return err
		case b[0] == on:
			before = Uplink
			r.selected = before
		default:
			before = Downlink
			r.selected = before
		}
	}
	if before == "" {
		before = Downlink // where Prepare leaves it
	}
	if r.selected != p {
		if err := r.choose(ctx, p); err != nil {
			return err
		}
	}
	err := f()
	if r.selected != before {
		// Also when ctx has ended: the exchange's own deadline bounds it.
		err = errors.Join(err, r.choose(context.WithoutCancel(ctx), before))
	}
	return err
}

// choose gives the controls to one path.
func (r *icom) choose(ctx context.Context, p Path) error {
	code := map[Path]byte{Downlink: selVFOA, Uplink: selVFOB}[p]
	if r.dual {
		code = map[Path]byte{Downlink: selMain, Uplink: selSub}[p]
		if r.swapped && r.sat == yes {
			code ^= selMain ^ selSub
		}
	}
	r.selected = ""
	err := r.wire.set(ctx, civSelect, code)
	if r.short && errors.Is(err, ErrSilent) {
		err = nil // an IC-821H may keep silent about a selection it has made
	}
	if err != nil {
		return fmt.Errorf("select the %s: %w", p, err)
	}
	r.selected = p
	return nil
}

// setHz sets a frequency and reads it back; twice, because an operator's dial
// or a lost acknowledgement can come between.
func (r *icom) setHz(ctx context.Context, hz int64, read ...byte) (int64, error) {
	if r.short {
		// How many digits this one takes is how many it sends; digits that are
		// not sent keep their value, so a short one cannot change bands.
		now, err := r.readHz(ctx, read...)
		if err != nil {
			return 0, err
		}
		if r.hzBytes == 4 && r.caps.band(now) != r.caps.band(hz) {
			return now, fmt.Errorf("this radio is on %s and its CI-V cannot change bands: turn the bands at its front panel: %w", formatHz(now), ErrUnsupported)
		}
	}
	sent := hz
	if r.hzBytes == 4 {
		sent = hz % 1e8
	}
	bcd, err := encodeBCD(sent, r.hzBytes)
	if err != nil {
		return 0, err
	}
	write := append([]byte{civSetHz}, bcd...)
	if read[0] != civReadHz {
		write = append(slices.Clone(read), bcd...)
	}
	var got int64
	for range 2 {
		err := r.wire.set(ctx, write...)
		if err != nil && !errors.Is(err, ErrSilent) {
			return 0, err
		}
		var readErr error
		if got, readErr = r.readHz(ctx, read...); readErr != nil {
			return 0, errors.Join(err, readErr)
		}
		if r.caps.nearest(got) == hz {
			return got, nil
		}
	}
	return got, fmt.Errorf("asked for %s, reads %s: %w", formatHz(hz), formatHz(got), ErrMismatch)
}

// setMode sets the mode of what is selected (plain) or of a VFO.
func (r *icom) setMode(ctx context.Context, m Mode, plain bool, vfo byte) error {
	code, data, err := icomModeCode(m)
	if err != nil {
		return err
	}
	var got Mode
	for range 2 {
		var err error
		switch {
		case !plain:
			err = r.wire.set(ctx, civVFOMode, vfo, code, data, filter1)
		case !r.filter && m == FMN:
			err = r.wire.set(ctx, civSetMode, code, 2)
		case !r.filter && m == FM:
			err = r.wire.set(ctx, civSetMode, code, filter1)
		case !r.filter:
			err = r.wire.set(ctx, civSetMode, code)
		default:
			err = r.wire.set(ctx, civSetMode, code, filter1)
		}
		if err == nil && plain && r.data {
			err = r.wire.set(ctx, civMore, dataMode, data, data*filter1)
		}
		if err != nil && !errors.Is(err, ErrSilent) {
			return err
		}
		var readErr error
		if got, readErr = r.readMode(ctx, plain, vfo); readErr != nil {
			return errors.Join(err, readErr)
		}
		if got == m || !r.filter && m == FMN && got == FM { // an IC-910H need not tell its filter
			return nil
		}
	}
	return fmt.Errorf("asked for mode %s, reads %q: %w", m, got, ErrMismatch)
}

// Tune sets one frequency. A downlink step of Doppler's size is a question
// which band is selected, the setting and its read-back; bands are selected
// only when they have to be, and an uplink that is right already is left alone.
func (r *icom) Tune(ctx context.Context, p Path, hz int64) (int64, error) {
	got, err := r.tune(ctx, p, hz)
	return got, failure(r.name, fmt.Sprintf("tune %s to %s", p, formatHz(hz)), err)
}

func (r *icom) tune(ctx context.Context, p Path, hz int64) (got int64, err error) {
	if err := r.caps.checkFrequency(hz); err != nil {
		return 0, err
	}
	hz = r.caps.nearest(hz)
	pair, err := r.pair(ctx)
	if err != nil {
		return 0, err
	}
	if !r.dual {
		return r.tuneVFO(ctx, p, hz)
	}
	switch p {
	case Downlink:
		main := func() error { got, err = r.setHzMoving(ctx, hz, !pair); return err }
		err = r.on(ctx, Downlink, main)
		if errors.Is(err, ErrRefused) && pair && !r.whichBand {
			r.selected = "" // the memory was wrong: SUB refuses MAIN's band
			err = r.on(ctx, Downlink, main)
		}
		return got, err
	case Uplink:
		if !pair {
			return 0, fmt.Errorf("satellite mode is off, so SUB is no uplink: prepare the radio for a pass first: %w", ErrUnsupported)
		}
		if now, err := r.transmitHz(ctx); err != nil || now == hz {
			return now, err
		}
		err = r.on(ctx, Uplink, func() error {
			got, err = r.setHz(ctx, hz, r.hzCommand()...)
			return err
		})
		if err != nil {
			return got, err
		}
		return got, r.confirmUplink(ctx, hz)
	}
	return 0, unknownPath(p)
}

// confirmUplink compares with what the radio says it would transmit.
func (r *icom) confirmUplink(ctx context.Context, hz int64) error {
	now, err := r.transmitHz(ctx)
	if err == nil && now != 0 && now != hz {
		r.sat = unknown
		err = fmt.Errorf("the uplink is set to %s but the radio would transmit on %s (has satellite mode or split been switched off?): %w",
			formatHz(hz), formatHz(now), ErrMismatch)
	}
	return err
}

// setHzMoving is setHz on MAIN that may trade bands with SUB: the two can
// never be on the same band, and the radio refuses rather than swaps.
func (r *icom) setHzMoving(ctx context.Context, hz int64, mayMove bool) (int64, error) {
	got, err := r.setHz(ctx, hz, r.hzCommand()...)
	if !mayMove || !errors.Is(err, ErrRefused) {
		return got, err
	}
	keyed, txErr := r.transmitting(ctx)
	if txErr != nil {
		return 0, errors.Join(err, txErr)
	}
	if keyed {
		return 0, ErrTransmitting
	}
	if err := r.wire.setOnce(ctx, civSelect, selSwap); err != nil {
		return 0, fmt.Errorf("exchange MAIN and SUB: %w", err)
	}
	r.upMode = ""
	got, err = r.setHz(ctx, hz, r.hzCommand()...)
	if errors.Is(err, ErrRefused) {
		err = errors.Join(err, r.wire.setOnce(ctx, civSelect, selSwap))
	}
	return got, err
}

// tuneVFO tunes a half-duplex model: VFO A receives, VFO B transmits.
func (r *icom) tuneVFO(ctx context.Context, p Path, hz int64) (got int64, err error) {
	vfo, err := vfoOf(p)
	if err != nil {
		return 0, err
	}
	keyed, err := r.transmitting(ctx)
	if err != nil {
		return 0, err
	}
	if keyed { // the selected VFO is the other one while split transmits
		return 0, ErrTransmitting
	}
	if r.byVFO {
		if r.selected != Downlink {
			if err := r.choose(ctx, Downlink); err != nil {
				return 0, err
			}
		}
		return r.setHz(ctx, hz, civVFOHz, vfo)
	}
	err = r.on(ctx, p, func() error {
		got, err = r.setHz(ctx, hz, civReadHz)
		return err
	})
	return got, err
}

func vfoOf(p Path) (byte, error) {
	switch p {
	case Downlink:
		return 0, nil
	case Uplink:
		return 1, nil
	}
	return 0, unknownPath(p)
}

func unknownPath(p Path) error {
	return fmt.Errorf("path %q is neither %s nor %s", printable(string(p)), Downlink, Uplink)
}

// SetMode sets the mode of one path.
func (r *icom) SetMode(ctx context.Context, p Path, m Mode) error {
	return failure(r.name, fmt.Sprintf("set %s mode %s", p, printable(string(m))), r.pathMode(ctx, p, m))
}

func (r *icom) pathMode(ctx context.Context, p Path, m Mode) error {
	vfo, err := vfoOf(p)
	if err != nil {
		return err
	}
	if err := r.caps.checkMode(m); err != nil {
		return err
	}
	pair, err := r.readPair(ctx) // 26 is refused in satellite mode: the memory must be right
	if err != nil {
		return err
	}
	switch {
	case !r.dual && r.byVFO:
		if r.selected != Downlink {
			if err := r.choose(ctx, Downlink); err != nil {
				return err
			}
		}
		return r.setMode(ctx, m, false, vfo)
	case r.dual && p == Uplink && !pair:
		return fmt.Errorf("satellite mode is off, so SUB is no uplink: prepare the radio for a pass first: %w", ErrUnsupported)
	}
	err = r.on(ctx, p, func() error { return r.setMode(ctx, m, r.plain(), 0) })
	if p == Uplink {
		r.upMode = ""
		if err == nil {
			r.upMode = m
		}
	}
	return err
}

// Halt makes sure that the radio receives. A radio whose state cannot be read
// may be on the air, so it is told to receive all the same. A model without a
// transmit command (IC-821H) cannot have been keyed from here.
func (r *icom) Halt(ctx context.Context) error {
	if !r.ptt {
		return nil
	}
	keyed := func(ctx context.Context) (bool, error) {
		b, err := r.wire.ask(ctx, civTransmit, txState)
		return isKeyed(b), err
	}
	receive := func(ctx context.Context) error { return r.wire.set(ctx, civTransmit, txState, off) }
	return failure(r.name, "stop transmitting", untilReceiving(ctx, keyed, receive))
}
