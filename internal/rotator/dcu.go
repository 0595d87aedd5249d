package rotator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gsd-mcp/internal/unit"
)

// The Hy-Gain DCU-1 family of azimuth controllers (source: DCU-1 and Rotor-EZ
// manuals as Hamlib's models 401 to 406 use them). A set prepares a bearing and
// then starts: both go out in one write, because K3NG's DCU-1 mode starts a
// prepared bearing at the next query. Whole degrees, 360 sent as 000: these
// rotators have their stop in the south, so both are one place.
func dcuDriver(name, title string, hamlib int) Driver {
	return Driver{
		Name: name, Title: title, Baud: 4800, Hamlib: hamlib,
		Caps: Caps{
			AzimuthOnly: true, Feedback: true, ResolutionDeg: 1, AzMinDeg: 0, AzMaxDeg: 360,
			MinInterval: 500 * time.Millisecond, Reply: 1500 * time.Millisecond,
		},
		Allowed: "APMI0123456789;",
	}
}

// dcu1Driver is set-only: a DCU-1 has no query.
func dcu1Driver() Driver {
	d := dcuDriver("dcu1", "Hy-Gain DCU-1 (cannot tell its position)", 403)
	d.Caps.Feedback = false
	d.Allowed += "S"
	d.New = func(l Link) Rotator { return &dcu{wire: newWire(d, l), stop: "AS1;"} }
	return d
}

// rotorezDriver also serves the RotorCard. Its stop is a lone semicolon: S and
// other letters switch options.
func rotorezDriver() Driver {
	d := dcuDriver("rotorez", "Idiom Press Rotor-EZ and RotorCard", 401)
	d.New = func(l Link) Rotator { return &dcu{wire: newWire(d, l), stop: ";", query: "AI1;"} }
	return d
}

func ercDriver() Driver {
	d := dcuDriver("erc", "DF9GR Easy Rotor Control (ERC)", 404)
	d.Allowed += "S"
	d.New = func(l Link) Rotator { return &dcu{wire: newWire(d, l), stop: "AS1;", query: "AI1;"} }
	return d
}

func yrc1Driver() Driver {
	d := dcuDriver("yrc1", "Hy-Gain DCU-2, DCU-3 and YRC-1", 406)
	d.Allowed += "S"
	d.New = func(l Link) Rotator { return &dcu{wire: newWire(d, l), stop: "AS1;", query: "AI1;"} }
	return d
}

// rt21Driver speaks with a decimal and has a query of its own. Elevation is a
// second unit on a second port.
func rt21Driver() Driver {
	d := dcuDriver("rt21", "Green Heron RT-21 (azimuth)", 405)
	d.Caps.ResolutionDeg, d.Caps.AzMaxDeg = 0.1, 359.9
	d.Allowed = "APBI0123456789.\r;"
	d.New = func(l Link) Rotator { return &dcu{wire: newWire(d, l), stop: ";", query: "BI1;", decimals: true} }
	return d
}

type dcu struct {
	wire
	stop, query string
	decimals    bool
}

func (u *dcu) Position(ctx context.Context) (unit.AzEl, error) {
	if u.query == "" {
		return unit.AzEl{}, noFeedback(u.name)
	}
	return u.position(ctx, func(ctx context.Context) (unit.AzEl, error) {
		if err := u.send(ctx, u.query); err != nil {
			return unit.AzEl{}, err
		}
		for {
			az, complete, err := dcuReply(string(u.in), u.decimals)
			if complete || err != nil {
				return unit.AzEl{AzDeg: az}, err
			}
			if err := u.more(ctx); err != nil {
				return unit.AzEl{}, err
			}
		}
	})
}

// dcuReply reads ";123", "123;" or ";123;", and of an RT-21 "123.4;" with up to
// two leading blanks. Three digits are a whole answer only with a semicolon at
// one side; an RT-21's ends in one.
func dcuReply(in string, decimals bool) (az float64, complete bool, err error) {
	s := strings.Trim(in, " \r\n")
	if decimals {
		number, ok := strings.CutSuffix(s, ";")
		if !ok {
			if len(s) > 5 {
				return 0, false, badReply(in, "want nnn.n;")
			}
			return 0, false, nil
		}
		whole, fraction, point := strings.Cut(number, ".")
		if !point || digits(whole) != len(whole) || len(whole) < 1 || len(whole) > 3 || digits(fraction) != 1 || len(fraction) != 1 {
			return 0, false, badReply(in, "want nnn.n;")
		}
		az, _, _ = decimal(number)
	} else {
		body := strings.Trim(s, ";")
		if len(body) < 3 && len(s) < 5 && digits(body) == len(body) {
			return 0, false, nil
		}
		if len(body) == 3 && digits(body) == 3 && body == s {
			return 0, false, nil // 123 and its semicolon is to come
		}
		if len(body) != 3 || digits(body) != 3 || len(s) > 5 {
			return 0, false, badReply(in, "want ;nnn or nnn;")
		}
		az, _, _ = decimal(body)
	}
	if az > 360 {
		return 0, false, badReply(in, "a bearing over 360")
	}
	return unit.Norm360(az), true, nil
}

func (u *dcu) Point(ctx context.Context, to unit.AzEl) error {
	if err := u.checkRange(to); err != nil {
		return err
	}
	frame := fmt.Sprintf("AP1%03d;AM1;", whole(to.AzDeg)%360)
	if u.decimals {
		frame = "AP1" + strings.Repeat("0", 5-len(tenths(to.AzDeg))) + tenths(to.AzDeg) + "\r;"
	}
	return u.move(ctx, fmt.Sprintf("turn to %.1f°", to.AzDeg), frame, u.Halt)
}

// Halt sends the stop. An idle Rotor-EZ answers it with its version, which the
// next Position waits out.
func (u *dcu) Halt(ctx context.Context) error {
	return u.halt(ctx, ";", u.stop)
}
