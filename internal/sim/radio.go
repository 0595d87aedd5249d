package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"gsd-mcp/internal/clock"
)

// A RadioFault is something that goes wrong with a simulated radio or its
// wire. A fault that makes no sense for a protocol has no effect there.
type RadioFault string

// The faults. Each stays until another is set.
const (
	RadioHealthy   RadioFault = ""
	RadioMute      RadioFault = "mute"      // never answers
	RadioSlow      RadioFault = "slow"      // answers after RadioSlowness of real time
	RadioGarbage   RadioFault = "garbage"   // noise before each answer
	RadioNoise     RadioFault = "noise"     // noise instead of answers
	RadioNAK       RadioFault = "nak"       // refuses every request
	RadioDial      RadioFault = "dial"      // an operator turns the dial after every fourth setting
	RadioForeign   RadioFault = "foreign"   // another radio on the bus answers first
	RadioCollision RadioFault = "collision" // every third request meets a collision
	RadioAckLost   RadioFault = "ack-lost"  // settings are done and not acknowledged
	RadioEcho      RadioFault = "echo"      // the wire's echo is switched over
	RadioStuckPTT  RadioFault = "stuck-ptt" // once keyed, receive is acknowledged and not done
	RadioMicPTT    RadioFault = "mic-ptt"   // somebody holds the microphone's key
	RadioLostByte  RadioFault = "lost-byte" // every eleventh byte on its way to the radio is lost
	RadioFloat32   RadioFault = "float32"   // frequencies are kept in 32-bit floats
	RadioUnplug    RadioFault = "unplug"    // vanishes after a while and comes back as another port; see Serve
	RadioSatLost   RadioFault = "sat-lost"  // satellite mode falls off with the next frequency (a memory recall)
)

// RadioSlowness is how late a slow radio answers: later than any driver waits.
const RadioSlowness = 1500 * time.Millisecond

// RadioFaults lists the names that ParseRadioFault knows.
func RadioFaults() []RadioFault {
	return []RadioFault{RadioMute, RadioSlow, RadioGarbage, RadioNoise, RadioNAK, RadioDial, RadioForeign, RadioCollision,
		RadioAckLost, RadioEcho, RadioLostByte, RadioStuckPTT, RadioMicPTT, RadioFloat32, RadioSatLost, RadioUnplug}
}

// ParseRadioFault reads a fault's name; "" is a healthy radio.
func ParseRadioFault(s string) (RadioFault, error) {
	if s == "" || slices.Contains(RadioFaults(), RadioFault(s)) {
		return RadioFault(s), nil
	}
	names := make([]string, 0, len(RadioFaults()))
	for _, f := range RadioFaults() {
		names = append(names, string(f))
	}
	return "", fmt.Errorf("radio fault %q is not known: choose one of %s", s, strings.Join(names, ", "))
}

// A RadioSide is one receiver of a simulated radio, or one VFO.
type RadioSide struct {
	FrequencyHz int64  `json:"frequency_hz"`
	Mode        string `json:"mode"`
}

// A RadioTruth is what a simulated radio really is doing, whatever it answers.
// Main is MAIN or VFO A, Sub is SUB or VFO B.
type RadioTruth struct {
	Time         time.Time `json:"time"`
	Main         RadioSide `json:"main"`
	Sub          RadioSide `json:"sub"`
	Satellite    bool      `json:"satellite"`
	Split        bool      `json:"split"`
	SubSelected  bool      `json:"sub_selected"`
	Transmitting bool      `json:"transmitting"`
	TransmitHz   int64     `json:"transmit_hz"`
	KeyRequests  int       `json:"key_requests"` // requests so far that would have put out power
	Requests     int       `json:"requests"`     // all requests so far
}

// A Radio is a simulated transceiver of any family.
type Radio interface {
	Device
	// Truth tells what the radio is doing. Safe for concurrent use.
	Truth() RadioTruth
	// SetFault makes something go wrong. Safe for concurrent use.
	SetFault(RadioFault)
	// Dial is an operator who turns the dial of the selected side. Safe for
	// concurrent use.
	Dial(hz int64)
}

// radioCore is what all simulated radios share: the wire, the faults that do
// not depend on the protocol, and the lock.
type radioCore struct {
	clk   *clock.Clock
	mu    sync.Mutex // guards what follows and the model's own state
	fault RadioFault
	truth RadioTruth
	noise *rand.Rand
	shout chan []byte // unsolicited bytes
}

func newRadioCore(clk *clock.Clock) radioCore {
	return radioCore{clk: clk, noise: rand.New(rand.NewPCG(9700, 1)), shout: make(chan []byte, 16)}
}

// SetFault makes something go wrong, or right again.
func (c *radioCore) SetFault(f RadioFault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = f
	if f == RadioMicPTT {
		c.truth.Transmitting = true
	}
}

// say queues unsolicited bytes; when nobody reads they are lost, as on a bus.
func (c *radioCore) say(p []byte) {
	select {
	case c.shout <- p:
	default:
	}
}

// key counts a request that puts out power, and obeys it.
func (c *radioCore) key() {
	c.truth.KeyRequests++
	c.truth.Transmitting = true
}

// unkey obeys a request to receive unless the relay is stuck.
func (c *radioCore) unkey() {
	if c.fault != RadioStuckPTT && c.fault != RadioMicPTT {
		c.truth.Transmitting = false
	}
}

// kept is the frequency as the radio's arithmetic keeps it.
func (c *radioCore) kept(hz int64) int64 {
	if c.fault == RadioFloat32 {
		return int64(float32(hz))
	}
	return hz
}

// serve moves bytes until ctx ends or the wire closes. handle turns received
// bytes into answers; it is called with the lock held.
func (c *radioCore) serve(ctx context.Context, wire io.ReadWriter, handle func([]byte) [][]byte) error {
	type chunk struct {
		b   []byte
		err error
	}
	in := make(chan chunk)
	stop := make(chan struct{})
	var reader sync.WaitGroup
	reader.Go(func() {
		for {
			b := make([]byte, 256)
			n, err := wire.Read(b)
			select {
			case in <- chunk{b[:n], err}:
			case <-stop:
				return
			}
			if err != nil {
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
		select {
		case <-ctx.Done():
			return ctx.Err()
		case p := <-c.shout:
			if _, err := wire.Write(p); err != nil {
				return wireError(err)
			}
		case r := <-in:
			if r.err != nil {
				return wireError(r.err)
			}
			c.mu.Lock()
			out := handle(r.b)
			fault := c.fault
			c.mu.Unlock()
			if err := c.answer(ctx, wire, fault, out); err != nil {
				return wireError(err)
			}
		}
	}
}

func (c *radioCore) answer(ctx context.Context, wire io.Writer, fault RadioFault, out [][]byte) error {
	for _, p := range out {
		switch fault {
		case RadioMute:
			continue
		case RadioSlow:
			t := time.NewTimer(RadioSlowness)
			select {
			case <-ctx.Done():
				t.Stop()
				return ctx.Err()
			case <-t.C:
			}
		case RadioGarbage, RadioNoise:
			junk := make([]byte, 1+c.noise.IntN(12))
			for i := range junk {
				junk[i] = byte(c.noise.IntN(256))
			}
			if fault == RadioNoise {
				p = junk
			} else {
				p = append(junk, p...)
			}
		}
		if _, err := wire.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// wireError turns the ways in which a wire ends into a plain end.
func wireError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) || errors.Is(err, syscall.EIO) {
		return nil
	}
	return err
}
