package sim

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"gsd-mcp/internal/unit"
)

// A RotatorFault is something that goes wrong with a simulated controller, its
// mount or its wire. Each was met on real hardware or firmware. A fault that
// makes no sense for a protocol has no effect there.
type RotatorFault string

// The faults. Each stays until another is set.
const (
	RotatorHealthy      RotatorFault = ""
	RotatorMute         RotatorFault = "mute"          // takes everything, answers nothing
	RotatorGarbage      RotatorFault = "garbage"       // noise instead of answers
	RotatorNoiseLine    RotatorFault = "noise-line"    // a line of text before each answer
	RotatorStrayByte    RotatorFault = "stray-byte"    // a zero byte before each answer
	RotatorFrameGap     RotatorFault = "frame-gap"     // a pause of 900 ms inside each answer
	RotatorBitFlip      RotatorFault = "bit-flip"      // one bit of every fourth answer is wrong
	RotatorStaleBurst   RotatorFault = "stale-burst"   // every fourth answer comes nine times
	RotatorLate         RotatorFault = "late"          // each answer answers the question before
	RotatorSwallowStop  RotatorFault = "swallow-stop"  // stop is taken and not done
	RotatorJam          RotatorFault = "jam"           // both axes are blocked
	RotatorRunAway      RotatorFault = "run-away"      // motors on, deaf to every command
	RotatorWrongWay     RotatorFault = "wrong-way"     // azimuth motor wired the wrong way round
	RotatorUncommanded  RotatorFault = "uncommanded"   // moves by itself, 1° per answer
	RotatorEchoOnly     RotatorFault = "echo-only"     // reports the target as the position
	RotatorFrozen       RotatorFault = "frozen"        // reports one position for ever
	RotatorAxisSwap     RotatorFault = "axis-swap"     // azimuth and elevation exchanged in answers
	RotatorSignLoss     RotatorFault = "sign-loss"     // answers lose the sign
	RotatorWrongScale   RotatorFault = "wrong-scale"   // answers are 1.5 times too large
	RotatorModulo       RotatorFault = "modulo"        // answers 0 to 359, also in the overlap
	RotatorReject       RotatorFault = "reject"        // says no to every command
	RotatorBootDeaf     RotatorFault = "boot-deaf"     // deaf for 3 s after power-up
	RotatorBootHoming   RotatorFault = "boot-homing"   // goes to 0/0 at power-up, deaf for 12 s, then answers all at once
	RotatorHalfCommands RotatorFault = "half-commands" // completes a cut command with digits of the one before
	RotatorUnplug       RotatorFault = "unplug"        // vanishes after a while and comes back as another port
	RotatorDropStop     RotatorFault = "drop-stop"     // the first of three stops is lost
)

// RotatorFaults lists the names that ParseRotatorFault knows.
func RotatorFaults() []RotatorFault {
	return []RotatorFault{
		RotatorMute, RotatorGarbage, RotatorNoiseLine, RotatorStrayByte, RotatorFrameGap, RotatorBitFlip, RotatorStaleBurst,
		RotatorLate, RotatorSwallowStop, RotatorDropStop, RotatorJam, RotatorRunAway, RotatorWrongWay, RotatorUncommanded,
		RotatorEchoOnly, RotatorFrozen, RotatorAxisSwap, RotatorSignLoss, RotatorWrongScale, RotatorModulo, RotatorReject,
		RotatorBootDeaf, RotatorBootHoming, RotatorHalfCommands, RotatorUnplug,
	}
}

// ParseRotatorFault reads a fault's name; "" is a healthy controller.
func ParseRotatorFault(s string) (RotatorFault, error) {
	if s == "" || slices.Contains(RotatorFaults(), RotatorFault(s)) {
		return RotatorFault(s), nil
	}
	names := make([]string, 0, len(RotatorFaults()))
	for _, f := range RotatorFaults() {
		names = append(names, string(f))
	}
	return "", fmt.Errorf("rotator fault %q is not known: choose one of %s", unit.Printable(s, 40), strings.Join(names, ", "))
}

const (
	bootDeaf   = 3 * time.Second
	bootHoming = 12 * time.Second // SatNOGS v2.2
	frameGap   = 900 * time.Millisecond
)

// A Controller is a simulated rotator controller: a protocol in front of a
// Mount. Its methods are safe for concurrent use.
type Controller struct {
	m     *Mount
	speak dialect

	mu      sync.Mutex // guards what follows and the dialect's state
	fault   RotatorFault
	noise   *rand.Rand
	answers int
	stops   int
	before  []byte // the last answer, for RotatorLate
	frozen  unit.AzEl
	deaf    time.Time // deaf until then, real time
	held    [][]byte  // answers held back while deaf
}

// A dialect turns received bytes into commands for the controller's mount and
// into answers. It is called with the controller's lock held.
type dialect interface {
	receive(c *Controller, in []byte) (answers [][]byte)
}

func newController(m *Mount, speak dialect) *Controller {
	return &Controller{m: m, speak: speak, noise: rand.New(rand.NewPCG(m.cfg.Seed, 232))}
}

// Mount is the mount behind the controller.
func (c *Controller) Mount() *Mount { return c.m }

// SetFault makes something go wrong, or right again.
func (c *Controller) SetFault(f RotatorFault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = f
	c.answers, c.stops, c.before, c.deaf = 0, 0, nil, time.Time{}
	c.frozen = c.m.Reading()
	c.m.Jam(f == RotatorJam, f == RotatorJam)
	c.m.RunAway(f == RotatorRunAway && c.m.Moving()) // else with the next move
	switch f {
	case RotatorBootDeaf:
		c.deaf = time.Now().Add(bootDeaf)
	case RotatorBootHoming:
		c.deaf = time.Now().Add(bootHoming)
		c.m.SetTarget(0, 0)
	}
}

// Run answers requests until ctx ends or the wire closes.
func (c *Controller) Run(ctx context.Context, wire io.ReadWriter) error {
	in := make(chan []byte)
	ended := make(chan error, 1)
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			b := make([]byte, 256)
			n, err := wire.Read(b)
			if n > 0 {
				select {
				case in <- b[:n]:
				case <-stop:
					return
				}
			}
			if err != nil {
				ended <- err
				return
			}
		}
	})
	defer func() {
		close(stop)
		// A wire with deadlines lets go of the reader; another one does when its
		// owner closes it.
		if d, ok := wire.(interface{ SetReadDeadline(time.Time) error }); ok && d.SetReadDeadline(time.Now()) == nil {
			reader.Wait()
			_ = d.SetReadDeadline(time.Time{})
		}
	}()
	for {
		var wake <-chan time.Time
		if c.holding() {
			wake = time.After(50 * time.Millisecond)
		}
		var out [][]byte
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return wireError(err)
		case b := <-in:
			out = c.handle(b)
		case <-wake:
			out = c.handle(nil)
		}
		for _, p := range out {
			if err := c.put(ctx, wire, p); err != nil {
				return wireError(err)
			}
		}
	}
}

func (c *Controller) holding() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.held) > 0
}

// handle takes received bytes and returns what to send, faults applied.
func (c *Controller) handle(in []byte) [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().Before(c.deaf) {
		if c.fault == RotatorBootHoming { // its UART's buffer fills meanwhile
			if c.held == nil {
				c.held = [][]byte{{}}
			}
			if len(c.held[0])+len(in) <= 64 {
				c.held[0] = append(c.held[0], in...)
			}
		}
		return nil
	}
	if c.held != nil {
		in = append(c.held[0], in...)
		c.held = nil
	}
	if len(in) == 0 {
		return nil
	}
	var out [][]byte
	for _, p := range c.speak.receive(c, in) {
		if len(p) > 0 {
			out = append(out, c.spoil(p)...)
		}
	}
	return out
}

// spoil applies the faults of the wire to one answer.
func (c *Controller) spoil(p []byte) [][]byte {
	c.answers++
	switch c.fault {
	case RotatorMute:
		return nil
	case RotatorGarbage:
		junk := make([]byte, 1+c.noise.IntN(20))
		for i := range junk {
			junk[i] = byte(c.noise.IntN(256))
		}
		return [][]byte{junk}
	case RotatorNoiseLine:
		return [][]byte{[]byte("1234: ADC ok\r\n"), p}
	case RotatorStrayByte:
		return [][]byte{append([]byte{0}, p...)}
	case RotatorBitFlip:
		if c.answers%4 == 0 {
			p = slices.Clone(p)
			p[c.noise.IntN(len(p))] ^= 1 << c.noise.IntN(8)
		}
	case RotatorStaleBurst:
		if c.answers%4 == 0 {
			return slices.Repeat([][]byte{p}, 9)
		}
	case RotatorLate:
		before := c.before
		c.before = slices.Clone(p)
		if before == nil {
			return nil
		}
		return [][]byte{before}
	}
	return [][]byte{p}
}

// put writes one answer.
func (c *Controller) put(ctx context.Context, wire io.Writer, p []byte) error {
	c.mu.Lock()
	gap := c.fault == RotatorFrameGap && len(p) > 1
	c.mu.Unlock()
	if gap {
		half := len(p) / 2
		if _, err := wire.Write(p[:half]); err != nil {
			return err
		}
		t := time.NewTimer(frameGap)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
		p = p[half:]
	}
	_, err := wire.Write(p)
	return err
}

// The commands of a dialect, with the faults of controller and mount.

func (c *Controller) point(azDeg, elDeg float64) (accepted bool) {
	return c.pointAzimuth(azDeg) && c.pointElevation(elDeg)
}

func (c *Controller) pointAzimuth(deg float64) (accepted bool) {
	switch c.fault {
	case RotatorReject:
		return false
	case RotatorWrongWay:
		at := c.m.Truth().AzDeg
		deg = at - (deg - at)
	}
	c.m.SetAzimuth(deg)
	c.runAway()
	return true
}

func (c *Controller) pointElevation(deg float64) (accepted bool) {
	if c.fault == RotatorReject {
		return false
	}
	c.m.SetElevation(deg)
	c.runAway()
	return true
}

func (c *Controller) runAway() {
	if c.fault == RotatorRunAway {
		c.m.RunAway(true)
	}
}

// stopLost counts a stop and reports whether it is not to be done.
func (c *Controller) stopLost() bool {
	c.stops++
	return c.fault == RotatorSwallowStop || c.fault == RotatorDropStop && c.stops%3 == 1
}

func (c *Controller) stop() {
	if !c.stopLost() {
		c.m.Stop()
	}
}

// reading is the position that the controller believes in.
func (c *Controller) reading() unit.AzEl {
	at := c.m.Reading()
	switch c.fault {
	case RotatorUncommanded:
		c.m.Push(1, 0)
	case RotatorEchoOnly:
		at = c.m.Target()
	case RotatorFrozen:
		at = c.frozen
	case RotatorAxisSwap:
		at.AzDeg, at.ElDeg = at.ElDeg, at.AzDeg
	case RotatorSignLoss:
		at.AzDeg, at.ElDeg = max(at.AzDeg, -at.AzDeg), max(at.ElDeg, -at.ElDeg)
	case RotatorWrongScale:
		at.AzDeg, at.ElDeg = 1.5*at.AzDeg, 1.5*at.ElDeg
	case RotatorModulo:
		at.AzDeg = unit.Norm360(at.AzDeg)
	}
	return at
}

// A lineBuffer cuts what comes in into lines. A line that is too long is
// dropped, as firmware with a small buffer should do.
type lineBuffer struct {
	ends string
	part []byte
}

const lineBufferMax = 64

func (l *lineBuffer) lines(in []byte) []string {
	var out []string
	for _, b := range in {
		switch {
		case strings.IndexByte(l.ends, b) >= 0:
			out = append(out, string(l.part))
			l.part = l.part[:0]
		case len(l.part) < lineBufferMax:
			l.part = append(l.part, b)
		}
	}
	return out
}

// RotatorProtocols lists the protocols that NewController knows, by the names
// of the station's drivers.
func RotatorProtocols() []string {
	var names []string
	for _, p := range rotatorProtocols() {
		names = append(names, p.name)
	}
	return names
}

type rotatorProtocol struct {
	name string
	make func(*Mount) *Controller
}

func rotatorProtocols() []rotatorProtocol {
	return []rotatorProtocol{
		{"easycomm1", NewEasycomm1},
		{"easycomm2", NewEasycomm2},
		{"easycomm3", NewEasycomm3},
		{"satnogs", NewSatNOGS},
		{"gs232a", NewGS232A},
		{"gs232b", NewGS232B},
		{"gs232az", NewGS232Az},
		{"k3ng", NewK3NG},
		{"rot1prog", NewRot1Prog},
		{"rot2prog", NewRot2Prog},
		{"md01", NewMD01},
		{"md01fine", NewMD01Fine},
		{"rc2800", NewRC2800},
		{"rc2800early", NewRC2800},
		{"dcu1", NewDCU1},
		{"rotorez", NewRotorEZ},
		{"erc", NewERC},
		{"yrc1", NewYRC1},
		{"rt21", NewRT21},
		{"rotctld", NewRotctld},
	}
}

// NewController makes a controller that speaks a protocol in front of m.
func NewController(protocol string, m *Mount) (*Controller, error) {
	for _, p := range rotatorProtocols() {
		if p.name == protocol {
			return p.make(m), nil
		}
	}
	return nil, fmt.Errorf("no simulated rotator speaks %q: choose one of %s", unit.Printable(protocol, 40), strings.Join(RotatorProtocols(), ", "))
}
