package rotator

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// A tape is a link that answers everything with the same bytes and then ends.
type tape struct {
	answer string
	left   string
	played bool
}

func (t *tape) Write(context.Context, []byte) error {
	if !t.played {
		t.left = t.answer
	}
	t.played = true
	return nil
}

func (t *tape) Read(ctx context.Context, p []byte) (int, error) {
	if t.left == "" {
		return 0, io.EOF
	}
	n := copy(p, t.left)
	t.left = t.left[n:]
	return n, nil
}

func (t *tape) Discard() error { return nil }

// Whatever a controller answers, a driver neither panics nor hangs, and a
// position that it reads is one that a rotator can have.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		"AZ123.4 EL45.6\n", "AZ269.8 EL44.9 ", "+269.8 +44.9 ", "AL HOME AZ ERROR\nAZ1 EL2\r\n", "AZ EL \nAZ1 EL2\n", "AZnan ELinf\n",
		"AZ0x10 EL1e2\n", "AZ12", "\xff\x00AZ1 EL1\n", "AZ1,5 EL2\n", strings.Repeat("A", 200), "GS4\n", "GE999\n",
		"+0123+0045\r\n", "AZ=123  EL=045\r\n", "?>\r\n", "C2\r+0123+0045\r\n", "AZ=123.4 EL=045.6\r\n",
		"W\x04\x08\x03 ", "W\x04\x08\x03\x04\n\x04\x00\x05\x06\n ", "1723456: ok\r\nW\x04\x08\x03\x04\n\x04\x00\x05\x06\n ",
		"A=98.1 S=9 M\rE=43.7 S=9 S\r", "A P=-359.9 S=9 ST\r", "A ERR=02\r", ";123", "123;", " 5.1;", "360.0;",
		"get_pos:\nAzimuth: 1.00\nElevation: 2.00\nRPRT 0\n", "get_pos:\nRPRT -6\n",
	} {
		for i := range Drivers() {
			f.Add(i, s)
		}
	}
	drivers := Drivers()
	f.Fuzz(func(t *testing.T, i int, answer string) {
		if i < 0 || i >= len(drivers) {
			return
		}
		d := drivers[i]
		d.Caps.MinInterval = 0
		link := &tape{answer: answer}
		r := d.New(link)
		for _, w := range wires(r) {
			w.unsure, w.caps.MinInterval = false, 0
		}
		at, err := r.Position(context.Background())
		if err == nil && !(-360 <= at.AzDeg && at.AzDeg <= readAzMax && readElMin <= at.ElDeg && at.ElDeg <= readElMax) {
			t.Errorf("%s: %q read as %v", d.Name, answer, at)
		}
		if err != nil && !errors.Is(err, ErrBadReply) && !errors.Is(err, ErrRejected) && !errors.Is(err, ErrNoReply) && !errors.Is(err, ErrNoFeedback) && !errors.Is(err, io.EOF) {
			t.Errorf("%s: %q: %v", d.Name, answer, err)
		}
		link.played = false
		if s, ok := r.(StatusReader); ok {
			for _, w := range wires(r) {
				w.unsure = false
			}
			_, _ = s.Status(context.Background())
		}
	})
}

// wires gives the test access to a driver's wire.
func wires(r Rotator) []*wire {
	switch r := r.(type) {
	case *easycomm1:
		return []*wire{&r.wire}
	case *easycomm2:
		return []*wire{&r.wire}
	case *easycomm3:
		return []*wire{&r.wire}
	case *gs232:
		return []*wire{&r.wire}
	case *spid:
		return []*wire{&r.wire}
	case *rc2800:
		return []*wire{&r.wire}
	case *dcu:
		return []*wire{&r.wire}
	case *rotctld:
		return []*wire{&r.wire}
	}
	panic("a driver of a new type")
}
