package sim

import (
	"context"
	"io"
	"time"

	"gsd-mcp/internal/clock"
)

// fiveByteGap is how long a radio waits for the next byte of a frame before it
// forgets the ones it has.
const fiveByteGap = 200 * time.Millisecond

// fiveByteModel is what one of Yaesu's five-byte radios does.
type fiveByteModel struct {
	bands   [][2]int64
	acks    bool         // one byte for each setting
	power   bool         // deaf until CAT has been switched on
	hz      map[byte]int // commands that set a frequency, of which receiver
	mode    map[byte]int //
	read    map[byte]int //
	pairOn  byte         // satellite mode, full duplex or split
	pairOff byte         //
	txSide  int          // receiver that the transmitter follows when the pair is on
	giga    bool         // a first digit C is 1200 MHz
	eeprom  map[uint16]func(*fiveByteRadio) [2]byte
	toggle  bool // 81 changes VFOs
	status  bool // E7 and F7 answer one byte; else five
	deafTX  bool // settings are ignored while it transmits
}

// A fiveByteRadio is a simulated Yaesu of the older kind.
type fiveByteRadio struct {
	radioCore
	fiveByteModel
	side     [3]fiveByteVFO // main or VFO A; receive side or VFO B; transmit side
	cat      bool
	vfoB     bool
	buf      []byte
	last     time.Time // of the last byte
	bytes    int
	settings int
}

type fiveByteVFO struct {
	hz   int64
	mode byte
}

func newFiveByte(clk *clock.Clock, m fiveByteModel) *fiveByteRadio {
	r := &fiveByteRadio{radioCore: newRadioCore(clk), fiveByteModel: m}
	r.side = [3]fiveByteVFO{{145_800_000, 8}, {435_100_000, 8}, {435_100_000, 8}}
	if m.txSide == 2 { // satellite mode has a receive and a transmit side of its own
		r.side[1], r.side[2] = fiveByteVFO{145_900_000, 8}, fiveByteVFO{435_100_000, 8}
	}
	return r
}

// Run answers requests on wire; see Device.
func (r *fiveByteRadio) Run(ctx context.Context, wire io.ReadWriter) error {
	return r.serve(ctx, wire, r.hear)
}

// Truth tells what the radio is doing. Main is what it receives on.
func (r *fiveByteRadio) Truth() RadioTruth {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.truth
	t.Time = r.clk.Now()
	names := map[byte]string{0: "LSB", 1: "USB", 2: "CW", 3: "CW-R", 4: "AM", 6: "WFM", 8: "FM", 0x0A: "USB-D", 0x0C: "FM-D", 0x88: "FM-N"}
	show := func(i int) RadioSide { return RadioSide{r.side[i].hz, names[r.side[i].mode]} }
	pair := t.Satellite || t.Split
	t.Main, t.Sub = show(0), show(1)
	tx := 0
	switch {
	case r.txSide == 2 && pair:
		t.Main, t.Sub, tx = show(1), show(2), 2
	case r.toggle:
		t.SubSelected = r.vfoB
		tx = r.selected()
		if pair {
			tx = 1 - tx
		}
	}
	t.TransmitHz = r.side[tx].hz
	return t
}

func (r *fiveByteRadio) selected() int {
	if r.vfoB {
		return 1
	}
	return 0
}

// Dial is an operator who turns the dial of the selected side. These radios
// announce nothing.
func (r *fiveByteRadio) Dial(hz int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mayTune(hz) {
		r.side[r.selected()].hz = hz
	}
}

func (r *fiveByteRadio) mayTune(hz int64) bool {
	for _, b := range r.bands {
		if b[0] <= hz && hz <= b[1] {
			return true
		}
	}
	return false
}

func (r *fiveByteRadio) hear(p []byte) (out [][]byte) {
	for _, x := range p {
		if r.bytes++; r.fault == RadioLostByte && r.bytes%11 == 0 {
			continue
		}
		now := time.Now()
		if now.Sub(r.last) > fiveByteGap {
			r.buf = r.buf[:0]
		}
		r.last = now
		r.buf = append(r.buf, x)
		if len(r.buf) < 5 {
			continue
		}
		f := [5]byte(r.buf)
		r.buf = r.buf[:0]
		r.truth.Requests++
		if answer := r.obey(f); len(answer) > 0 && !(r.fault == RadioAckLost && len(answer) == 1 && f[4] < 0xE0) {
			out = append(out, answer)
		}
	}
	return out
}

// obey carries out a frame and returns its answer.
func (r *fiveByteRadio) obey(f [5]byte) []byte {
	op := f[4]
	ack := func(already bool) []byte {
		switch {
		case !r.acks:
			return nil
		case already:
			return []byte{0xF0}
		}
		return []byte{0x00}
	}
	if r.power {
		switch {
		case op == 0x00:
			r.cat = true
			return nil
		case op == 0x80:
			r.cat = false
			return nil
		case !r.cat:
			return nil
		}
	}
	// It has no way to refuse: it takes a setting and does nothing.
	idle := !(r.deafTX && r.truth.Transmitting) && r.fault != RadioNAK
	if i, ok := r.hz[op]; ok {
		r.tune(r.of(i), f, idle)
		return ack(false)
	}
	if i, ok := r.mode[op]; ok {
		if idle {
			r.side[r.of(i)].mode = f[0]
		}
		return ack(false)
	}
	if i, ok := r.read[op]; ok {
		return r.show(r.side[r.of(i)])
	}
	switch op {
	case 0x08:
		already := r.truth.Transmitting
		r.key()
		return ack(already)
	case 0x88:
		already := !r.truth.Transmitting
		r.unkey()
		return ack(already)
	case r.pairOn, r.pairOff:
		on := op == r.pairOn
		already := on == (r.truth.Satellite || r.truth.Split)
		if r.txSide == 2 {
			r.truth.Satellite = on
		} else {
			r.truth.Split = on
		}
		return ack(already)
	case 0x81:
		if r.toggle {
			r.vfoB = !r.vfoB
			return ack(false)
		}
	case 0xBB:
		if read := r.eeprom[uint16(f[0])<<8|uint16(f[1])]; read != nil {
			v := read(r)
			return v[:]
		}
	case 0x0A, 0x0B, 0x1A, 0x1B, 0x2A, 0x2B: // tones
		return ack(false)
	case 0xE7, 0xF7:
		return r.meters(op)
	}
	return nil
}

// of is the receiver that a command means: on a radio with VFOs the selected
// one.
func (r *fiveByteRadio) of(i int) int {
	if r.toggle {
		return r.selected()
	}
	return i
}

func (r *fiveByteRadio) meters(op byte) []byte {
	b := byte(0x05) // S-meter
	switch {
	case op == 0xE7 && r.acks:
		b = 0x09
	case op == 0xE7:
	case r.truth.Transmitting && r.acks: // bit 5: no split
		b = 0x08
		if !r.truth.Split {
			b |= 0x20
		}
	case r.truth.Transmitting:
		b = 0x0A
	case r.acks:
		b = 0xFF
	default:
		b = 0x80
	}
	if !r.status {
		return []byte{b, 0, 0, 0, 0}
	}
	return []byte{b}
}

func (r *fiveByteRadio) tune(i int, f [5]byte, idle bool) {
	var base, hz int64
	if r.giga && f[0]>>4 == 0xC { // a digit twelve
		base = 1200e6
		f[0] &= 0x0F
	}
	for _, x := range f[:4] {
		if x>>4 > 9 || x&15 > 9 {
			return
		}
		hz = hz*100 + int64(x>>4)*10 + int64(x&15)
	}
	if hz = r.kept(base + hz*10); idle && r.mayTune(hz) {
		r.side[i].hz = hz
	}
	if r.settings++; r.fault == RadioDial && r.settings%4 == 0 {
		r.side[i].hz += 2000
	}
}

func (r *fiveByteRadio) show(v fiveByteVFO) []byte {
	b := []byte{0, 0, 0, 0, v.mode}
	d := v.hz / 10
	for i := 3; i >= 0; i-- {
		b[i] = byte(d%10) | byte(d/10%10)<<4
		d /= 100
	}
	return b
}

// newFT847 makes a Yaesu FT-847: CAT has to be switched on, nothing is
// acknowledged, satellite mode has sides of its own.
func newFT847(clk *clock.Clock) *fiveByteRadio {
	return newFiveByte(clk, fiveByteModel{
		bands: [][2]int64{{100e3, 30e6}, {36e6, 76e6}, {108e6, 174e6}, {420e6, 512e6}}, power: true, status: true,
		hz: map[byte]int{0x01: 0, 0x11: 1, 0x21: 2}, mode: map[byte]int{0x07: 0, 0x17: 1, 0x27: 2}, read: map[byte]int{0x03: 0, 0x13: 1, 0x23: 2},
		pairOn: 0x4E, pairOff: 0x8E, txSide: 2,
	})
}

// newFT736R makes a Yaesu FT-736R, which cannot be read.
func newFT736R(clk *clock.Clock) *fiveByteRadio {
	return newFiveByte(clk, fiveByteModel{
		bands: [][2]int64{{50e6, 54e6}, {144e6, 148e6}, {430e6, 450e6}, {1240e6, 1300e6}}, power: true, giga: true,
		hz: map[byte]int{0x01: 0, 0x1E: 1, 0x2E: 2}, mode: map[byte]int{0x07: 0, 0x17: 1, 0x27: 2},
		pairOn: 0x0E, pairOff: 0x8E, txSide: 2,
	})
}

// newFT817 makes one of the FT-817 family: VFO A and B, each setting
// acknowledged. vfo, split say where in its memory those are.
func newFT817(clk *clock.Clock, bands [][2]int64, vfo, split uint16) *fiveByteRadio {
	eeprom := map[uint16]func(*fiveByteRadio) [2]byte{0x0078: func(*fiveByteRadio) [2]byte { return [2]byte{} }}
	if vfo == 0x0054 {
		eeprom[vfo] = func(r *fiveByteRadio) [2]byte { return [2]byte{0x00, 0x80 | flag(r.vfoB)} }
		eeprom[split] = func(r *fiveByteRadio) [2]byte { return [2]byte{flag(r.truth.Split) << 7} }
	} else {
		eeprom[vfo] = func(r *fiveByteRadio) [2]byte { return [2]byte{flag(r.vfoB)} }
		eeprom[split] = func(r *fiveByteRadio) [2]byte { return [2]byte{0, flag(r.truth.Split) << 7} }
	}
	return newFiveByte(clk, fiveByteModel{
		bands: bands, acks: true, status: true, toggle: true, deafTX: true, eeprom: eeprom,
		hz: map[byte]int{0x01: 0}, mode: map[byte]int{0x07: 0}, read: map[byte]int{0x03: 0},
		pairOn: 0x02, pairOff: 0x82, txSide: 1,
	})
}
