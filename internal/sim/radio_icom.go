package sim

import (
	"bytes"
	"context"
	"io"

	"gsd-mcp/internal/clock"
)

// icomModel is what one model's CI-V answers.
type icomModel struct {
	addr      byte
	echo      bool
	bands     [][2]int64 // Hz, both ends included
	dual      bool       // MAIN and SUB that never share a band; else VFO A and B
	satellite []byte     // command; nil: none by CI-V
	whichBand bool       // 07 D2
	byVFO     bool       // 25, 26
	filter    bool       // filter number in mode frames
	data      bool       // 1A 06
	ptt       bool       // 1C 00
	txHz      bool       // 1C 03
	fourBytes bool       // frequencies without the 1 GHz and 100 MHz digits
	swapped   bool       // D0 and D1 change places in satellite mode
}

// An Icom is a simulated Icom transceiver on a CI-V wire. It refuses what the
// radios refuse: the other side's band, frequencies outside its bands, VFOs,
// split and 26 while in satellite mode.
type Icom struct {
	radioCore
	icomModel
	buf       []byte
	side      [2]icomBand // MAIN, SUB; a model with VFOs uses the first
	sub       bool        // SUB has the controls
	registers map[string][]byte
	settings  int // frequencies set so far, for the operator's dial
}

type icomBand struct {
	vfo [2]icomVFO
	b   bool // VFO B is selected
}

type icomVFO struct {
	hz                 int64
	mode, data, filter byte
}

func (b *icomBand) at(other bool) *icomVFO {
	if b.b != other {
		return &b.vfo[1]
	}
	return &b.vfo[0]
}

// An IC9700 is a simulated Icom IC-9700.
type IC9700 = Icom

// NewIC9700 makes a simulated IC-9700: MAIN on 145.800 MHz FM, SUB on
// 435.100 MHz FM, satellite mode off, echo on as on a one-wire bus.
func NewIC9700(clk *clock.Clock) *IC9700 {
	return newIcom(clk, icomModel{
		addr: 0xA2, echo: true, dual: true, whichBand: true, byVFO: true, filter: true, data: true, ptt: true, txHz: true,
		satellite: []byte{0x16, 0x5A},
		bands:     vhfBands(),
	})
}

func newIcom(clk *clock.Clock, m icomModel) *Icom {
	r := &Icom{radioCore: newRadioCore(clk), icomModel: m}
	fm := func(hz int64) icomVFO { return icomVFO{hz: hz, mode: 5, filter: 1} }
	r.side[0].vfo = [2]icomVFO{fm(145_800_000), fm(145_900_000)}
	r.side[1].vfo = [2]icomVFO{fm(435_100_000), fm(435_200_000)}
	r.registers = map[string][]byte{
		"\x14\x0a": {0x01, 0x28},                                   // power, half
		"\x15\x01": {0x01},                                         // squelch open
		"\x15\x02": {0x01, 0x20},                                   // S-meter, S9
		"\x15\x11": {0, 0}, "\x15\x12": {0, 0}, "\x15\x13": {0, 0}, // power, SWR, ALC
		"\x16\x02": {0}, "\x16\x42": {0}, "\x16\x43": {0}, "\x16\x59": {0}, // preamp, tone, TSQL, dual watch
		"\x1a\x03": {0x34},                                                // filter width
		"\x1b\x00": {0, 0x08, 0x85},                                       // tone 88.5 Hz
		"\x1b\x01": {0, 0x08, 0x85}, "\x18": {0x01}, "\x19\x00": {m.addr}, // TSQL tone, power switch, address
	}
	return r
}

// FrontPanelSatellite switches satellite mode as an operator does, on a model
// whose wire cannot.
func (r *Icom) FrontPanelSatellite(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.truth.Satellite = on
}

// ShortFrequencies makes the radio send and take frequencies without the 1 GHz
// and 100 MHz digits, as some IC-821H do.
func (r *Icom) ShortFrequencies(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fourBytes = on
}

// SetEcho says whether the wire brings the controller's own words back.
func (r *Icom) SetEcho(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.echo = on
}

// Run answers requests on wire; see Device.
func (r *Icom) Run(ctx context.Context, wire io.ReadWriter) error {
	return r.serve(ctx, wire, r.hear)
}

// Truth tells what the radio is doing.
func (r *Icom) Truth() RadioTruth {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.truth
	t.Time = r.clk.Now()
	t.SubSelected = r.sub
	t.TransmitHz = r.transmitter().hz
	side := func(v *icomVFO) RadioSide { return RadioSide{v.hz, icomModeName(v.mode, v.data)} }
	if r.dual {
		t.Main, t.Sub = side(r.side[0].at(false)), side(r.side[1].at(false))
	} else {
		t.Main, t.Sub = side(&r.side[0].vfo[0]), side(&r.side[0].vfo[1])
		t.SubSelected = r.side[0].b
	}
	return t
}

func icomModeName(mode, data byte) string {
	name, ok := map[byte]string{0: "LSB", 1: "USB", 2: "AM", 3: "CW", 4: "RTTY", 5: "FM", 6: "WFM", 7: "CW-R", 8: "RTTY-R", 0x17: "DV", 0x22: "DD"}[mode]
	if ok && data != 0 {
		name += "-D"
	}
	return name
}

// transmitter is the VFO that the transmitter follows.
func (r *Icom) transmitter() *icomVFO {
	switch {
	case r.dual && r.truth.Satellite:
		return r.side[1].at(false)
	case r.truth.Split:
		return r.side[0].at(true)
	}
	return r.side[0].at(false)
}

// Dial is an operator who turns the selected side's dial. The radio says so on
// the bus without saying which side it was.
func (r *Icom) Dial(hz int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(hz)
}

func (r *Icom) turn(hz int64) {
	if !r.mayTune(hz) {
		return
	}
	r.current().at(false).hz = hz
	r.say(r.frame(0x00, append([]byte{0x00}, r.bcd(hz)...)))
}

func (r *Icom) current() *icomBand {
	if r.sub {
		return &r.side[1]
	}
	return &r.side[0]
}

func (r *Icom) frame(to byte, body []byte) []byte {
	return append(append([]byte{0xFE, 0xFE, to, r.addr}, body...), 0xFD)
}

// hear splits what comes down the wire into frames and answers each.
func (r *Icom) hear(p []byte) (out [][]byte) {
	r.buf = append(r.buf, p...)
	for {
		end := bytes.IndexByte(r.buf, 0xFD)
		if end < 0 {
			if len(r.buf) > 4096 {
				r.buf = nil
			}
			return out
		}
		raw := bytes.Clone(r.buf[:end+1])
		r.buf = r.buf[end+1:]
		start := bytes.LastIndexByte(raw, 0xFE)
		if start < 0 || len(raw)-start < 5 {
			continue
		}
		msg := raw[start+1 : len(raw)-1]
		r.truth.Requests++
		jam := r.fault == RadioCollision && r.truth.Requests%3 == 0
		if r.echo != (r.fault == RadioEcho) {
			heard := bytes.Clone(raw)
			if jam {
				heard[len(heard)-1] = 0xFC
			}
			out = append(out, heard)
		} else if jam {
			out = append(out, []byte{0xFC})
		}
		if jam || msg[0] != r.addr && msg[0] != 0x00 {
			continue
		}
		answer := r.answerTo(msg[2:])
		if r.fault == RadioForeign {
			fake := []byte{0xFE, 0xFE, msg[1], 0x94}
			fake = append(append(fake, msg[2], 0x00, 0x00, 0x70, 0x00, 0x00), 0xFD)
			out = append(out, fake, []byte{0xFE, 0xFE, msg[1], 0x94, 0xFB, 0xFD})
		}
		if answer == nil || r.fault == RadioAckLost && len(answer) == 1 {
			continue
		}
		out = append(out, r.frame(msg[1], answer))
	}
}

func (r *Icom) answerTo(b []byte) []byte {
	ok, no := []byte{0xFB}, []byte{0xFA}
	if r.fault == RadioNAK {
		return no
	}
	done := func(yes bool) []byte {
		if yes {
			return ok
		}
		return no
	}
	v := r.current().at(false)
	cmd, arg := b[0], b[1:]
	switch {
	case cmd == 0x00:
		r.tune(v, arg)
		return nil
	case cmd == 0x03 && len(arg) == 0:
		return append([]byte{0x03}, r.bcd(v.hz)...)
	case cmd == 0x04 && len(arg) == 0:
		if !r.filter {
			return []byte{0x04, v.mode}
		}
		return []byte{0x04, v.mode, v.filter}
	case cmd == 0x05:
		return done(r.tune(v, arg))
	case cmd == 0x06 && (len(arg) == 1 || len(arg) == 2):
		filter := byte(1)
		if len(arg) == 2 {
			filter = arg[1]
		}
		return done(setIcomMode(v, arg[0], v.data, filter))
	case cmd == 0x07 && len(arg) >= 1:
		return r.selectSide(arg)
	case cmd == 0x0F && len(arg) == 0:
		return []byte{0x0F, flag(r.truth.Split)}
	case cmd == 0x0F && len(arg) == 1:
		if r.truth.Satellite && arg[0] == 1 || arg[0] > 1 && arg[0] < 0x10 || arg[0] > 0x12 {
			return no
		}
		if arg[0] <= 1 {
			r.truth.Split = arg[0] == 1
		}
		return ok
	case r.satellite != nil && bytes.HasPrefix(b, r.satellite):
		return r.satelliteMode(b)
	case r.data && cmd == 0x1A && len(arg) == 1 && arg[0] == 0x06:
		return []byte{0x1A, 0x06, v.data, v.data * v.filter}
	case r.data && cmd == 0x1A && len(arg) == 3 && arg[0] == 0x06 && arg[1] <= 1:
		v.data = arg[1]
		return ok
	case cmd == 0x1C && r.ptt:
		return r.transmit(arg)
	case cmd == 0x17 || cmd == 0x28:
		r.key()
		return ok
	case cmd == 0x25 && r.byVFO && len(arg) >= 1 && arg[0] <= 1:
		v := r.current().at(arg[0] == 1)
		if len(arg) == 1 {
			return append([]byte{0x25, arg[0]}, r.bcd(v.hz)...)
		}
		return done(r.tune(v, arg[1:]))
	case cmd == 0x26 && r.byVFO && len(arg) >= 1 && arg[0] <= 1 && !(r.dual && r.truth.Satellite):
		v := r.current().at(arg[0] == 1)
		switch len(arg) {
		case 1:
			return []byte{0x26, arg[0], v.mode, v.data, v.filter}
		case 4:
			return done(setIcomMode(v, arg[1], arg[2], arg[3]))
		}
	}
	return r.register(b)
}

// register serves the settings that nothing else depends on.
func (r *Icom) register(b []byte) []byte {
	for n := min(2, len(b)); n >= 1; n-- {
		value, known := r.registers[string(b[:n])]
		switch {
		case !known:
		case len(b) == n:
			return append(bytes.Clone(b), value...)
		case len(b) == n+len(value) && b[0] != 0x15 && b[0] != 0x18 && b[0] != 0x19:
			r.registers[string(b[:n])] = bytes.Clone(b[n:])
			return []byte{0xFB}
		}
	}
	return []byte{0xFA}
}

func (r *Icom) satelliteMode(b []byte) []byte {
	n := len(r.satellite)
	switch {
	case len(b) == n:
		return append(bytes.Clone(b), flag(r.truth.Satellite))
	case len(b) == n+1 && b[n] <= 1:
		r.truth.Satellite = b[n] == 1
		if r.truth.Satellite {
			r.truth.Split = false
			r.side[0].b, r.side[1].b = false, false
		}
		return []byte{0xFB}
	}
	return []byte{0xFA}
}

func (r *Icom) transmit(arg []byte) []byte {
	switch {
	case len(arg) == 1 && arg[0] == 0x00:
		return []byte{0x1C, 0x00, flag(r.truth.Transmitting)}
	case len(arg) == 1 && arg[0] == 0x03 && r.txHz:
		return append([]byte{0x1C, 0x03}, r.bcd(r.transmitter().hz)...)
	case len(arg) == 2 && arg[0] == 0x00 && arg[1] == 0x01, len(arg) == 2 && arg[0] == 0x01 && arg[1] == 0x02:
		r.key()
		return []byte{0xFB}
	case len(arg) == 2 && arg[0] == 0x00 && arg[1] == 0x00:
		r.unkey()
		return []byte{0xFB}
	}
	return []byte{0xFA}
}

func (r *Icom) selectSide(arg []byte) []byte {
	ok, no := []byte{0xFB}, []byte{0xFA}
	sat := r.dual && r.truth.Satellite
	switch {
	case len(arg) == 1 && arg[0] <= 1 && !sat:
		r.current().b = arg[0] == 1
	case len(arg) == 1 && arg[0] == 0xA0 && !sat:
		*r.current().at(true) = *r.current().at(false)
	case len(arg) == 1 && arg[0] == 0xB0 && r.dual:
		r.side[0], r.side[1] = r.side[1], r.side[0]
	case len(arg) == 1 && arg[0] == 0xB0:
		v := &r.side[0].vfo
		v[0], v[1] = v[1], v[0]
	case len(arg) == 1 && (arg[0] == 0xD0 || arg[0] == 0xD1) && r.dual:
		r.sub = (arg[0] == 0xD1) != (r.swapped && sat)
	case len(arg) == 1 && arg[0] == 0xD2 && r.whichBand:
		return []byte{0x07, 0xD2, flag(r.sub)}
	case len(arg) == 2 && arg[0] == 0xD2 && arg[1] <= 1 && r.whichBand:
		r.sub = arg[1] == 1
	default:
		return no
	}
	return ok
}

// tune sets a frequency from digits, or refuses and changes nothing.
func (r *Icom) tune(v *icomVFO, digits []byte) bool {
	hz, ok := fromBCD(digits)
	if r.fourBytes && len(digits) == 4 {
		hz += v.hz / 1e8 * 1e8 // digits that are not sent keep their value
	} else if len(digits) != 5 {
		ok = false
	}
	hz = r.kept(hz)
	if !ok || !r.mayTune(hz) {
		return false
	}
	if r.fault == RadioSatLost {
		r.truth.Satellite = false
	}
	v.hz = hz
	if r.settings++; r.fault == RadioDial && r.settings%4 == 0 {
		r.turn(hz + 2000)
	}
	return true
}

// mayTune applies the two rules of the front end: inside a band, and not the
// other side's.
func (r *Icom) mayTune(hz int64) bool {
	band := r.band(hz)
	if band < 0 {
		return false
	}
	if !r.dual {
		return true
	}
	other := &r.side[1]
	if r.sub {
		other = &r.side[0]
	}
	return band != r.band(other.at(false).hz)
}

func (r *Icom) band(hz int64) int {
	for i, b := range r.bands {
		if b[0] <= hz && hz <= b[1] {
			return i
		}
	}
	return -1
}

func setIcomMode(v *icomVFO, mode, data, filter byte) bool {
	if icomModeName(mode, 0) == "" || data > 1 || filter < 1 || filter > 3 {
		return false
	}
	v.mode, v.data, v.filter = mode, data, filter
	return true
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// bcd is the frequency as this model sends it.
func (r *Icom) bcd(hz int64) []byte {
	out := make([]byte, 5)
	for i := range out {
		out[i] = byte(hz%10) | byte(hz/10%10)<<4
		hz /= 100
	}
	if r.fourBytes {
		return out[:4]
	}
	return out
}

func fromBCD(b []byte) (hz int64, ok bool) {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i]>>4 > 9 || b[i]&15 > 9 {
			return 0, false
		}
		hz = hz*100 + int64(b[i]>>4)*10 + int64(b[i]&15)
	}
	return hz, true
}
