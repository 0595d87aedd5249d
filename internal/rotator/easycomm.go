package rotator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gsd-mcp/internal/unit"
)

// EasyComm II, the text protocol of most home-made controllers (source:
// easycomm.txt by Chris Jackson, G7UPN; Hamlib model 202; K3NG and SatNOGS
// firmware as measured). Angles have one decimal; a set is not answered.
//
// The query is both words on one line. Hamlib since 2023-12 asks for each axis
// on a line of its own, and SatNOGS firmware takes that for "go to 0".
const (
	easycommQuery = "AZ EL \n"
	easycommStop  = "SA SE \n"
	easycommPark  = "PARK\n"
	easycommLead  = "\n" // ends half a command before a stop
)

// easycomm is what the EasyComm dialects share.
type easycomm struct {
	wire
	setSuffix string // after both angles
}

func easycomm2Driver() Driver {
	d := Driver{
		Name: "easycomm2", Title: "EasyComm II", Baud: 9600, Hamlib: 202,
		Caps: Caps{
			Feedback: true, Park: true, ResolutionDeg: 0.1,
			// K3NG takes up to 450.9 and refuses a sign; the document sets no limits.
			AzMinDeg: 0, AzMaxDeg: 450, ElMinDeg: 0, ElMaxDeg: 180,
			MinInterval: 50 * time.Millisecond, Reply: 500 * time.Millisecond,
			Settle: 2 * time.Second, // an Arduino that opening has reset
		},
		Allowed: "AZELSPRK0123456789. \n",
	}
	d.New = func(l Link) Rotator { return &easycomm2{easycomm{newWire(d, l), ""}} }
	return d
}

// easycomm2 parks by a command of its own.
type easycomm2 struct{ easycomm }

func (e *easycomm2) Park(ctx context.Context) error {
	return e.move(ctx, "park", easycommPark, e.Halt)
}

func (e *easycomm) Position(ctx context.Context) (unit.AzEl, error) {
	return e.position(ctx, func(ctx context.Context) (unit.AzEl, error) {
		if err := e.send(ctx, easycommQuery); err != nil {
			return unit.AzEl{}, err
		}
		return e.readPosition(ctx)
	})
}

// readPosition reads on until there is a position, past alarms, echoes of the
// query and empty lines.
func (e *easycomm) readPosition(ctx context.Context) (unit.AzEl, error) {
	for {
		at, rest, verdict := easycommTake(string(e.in))
		e.in = append(e.in[:0], rest...)
		switch verdict {
		case replyGot:
			if extra := strings.Trim(rest, " \r\n"); extra != "" && !strings.HasPrefix(extra, "AL") {
				return at, badReply(extra, "more than one answer to one question")
			}
			return at, nil
		case replyBad:
			return at, badReply(rest, "want AZ and EL with decimal numbers")
		}
		if err := e.more(ctx); err != nil {
			return at, err
		}
	}
}

type verdict int

const (
	replyMore verdict = iota // not complete
	replyGot
	replyBad
)

// easycommTake takes a position off the start of what was received. It returns
// what is left; of a bad reply, the reply.
//
// A reply ends in CR, LF or both, or, from K3NG, in the space that ended the
// query. K3NG without its Hamlib option leaves out the keys and always writes
// the signs: "+269.8 +44.9 ".
func easycommTake(in string) (at unit.AzEl, rest string, v verdict) {
	for {
		in = strings.TrimLeft(in, " \r\n")
		end := strings.IndexAny(in, "\r\n")
		line := in
		if end >= 0 {
			line = strings.TrimRight(in[:end], " ")
		}
		if end >= 0 && (strings.HasPrefix(line, "AL") || line == strings.TrimRight(easycommQuery, " \n")) {
			in = in[end:]
			continue
		}
		at, tail, ok := easycommNumbers(line)
		switch {
		case ok && end >= 0 && tail == "":
			return at, in[end:], replyGot
		case ok && end < 0 && strings.HasPrefix(tail, " "):
			return at, tail, replyGot
		case end >= 0, len(in) > lineMax:
			return unit.AzEl{}, line, replyBad
		}
		return unit.AzEl{}, in, replyMore
	}
}

// easycommNumbers reads "AZ1.0 EL2.0" or "+1.0 +2.0".
func easycommNumbers(s string) (at unit.AzEl, rest string, ok bool) {
	keys := strings.HasPrefix(s, "AZ")
	number := func(key string) (value float64, ok bool) {
		if keys {
			if s, ok = strings.CutPrefix(s, key); !ok {
				return 0, false
			}
			s = strings.TrimLeft(s, " ")
		} else if !strings.HasPrefix(s, "+") && !strings.HasPrefix(s, "-") {
			return 0, false
		}
		value, s, ok = decimal(s)
		return value, ok
	}
	if at.AzDeg, ok = number("AZ"); !ok {
		return at, s, false
	}
	s = strings.TrimLeft(s, " ")
	at.ElDeg, ok = number("EL")
	return at, s, ok
}

func (e *easycomm) Point(ctx context.Context, to unit.AzEl) error {
	if err := e.checkRange(to); err != nil {
		return err
	}
	frame := "AZ" + tenths(to.AzDeg) + " EL" + tenths(to.ElDeg) + e.setSuffix + "\n"
	return e.move(ctx, fmt.Sprintf("point to %v", to), frame, e.Halt)
}

func (e *easycomm) Halt(ctx context.Context) error {
	return e.halt(ctx, easycommLead, easycommStop)
}
