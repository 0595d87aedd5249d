package rotator

import (
	"fmt"
	"time"
)

// SatNOGS rotator firmware v2.2 speaks a dialect of EasyComm III (source: the
// firmware, run in an AVR simulator). What is different:
//
//   - power-up, and opening the port of a board that resets on DTR, makes it
//     home at once; it is deaf for 12 s and then answers what piled up;
//   - a query on one axis means "go to 0"; only both words on one line ask;
//   - a stop is one line that starts with SA SE, and it is answered;
//   - it checks no range: what it is told, it drives to;
//   - the error register is a list of numbers, not bits.
func satnogsDriver() Driver {
	d := easycomm3Driver()
	d.Name, d.Title, d.Baud = "satnogs", "SatNOGS rotator v2.2 firmware", 19200
	d.Hamlib = 202
	d.Caps.Winding, d.Caps.MovesOnOpen = true, true // it counts steps from home
	d.Caps.AzMinDeg, d.Caps.AzMaxDeg = -180, 540
	d.Caps.Settle = 13 * time.Second
	d.Allowed += "-"
	d.New = func(l Link) Rotator { return &easycomm3{easycomm2{easycomm{newWire(d, l), ""}}, satnogsErrors} }
	return d
}

func satnogsErrors(n int) string {
	switch n {
	case 0, 1:
		return ""
	case 2:
		return "sensor"
	case 4:
		return "homing failed"
	case 8:
		return "motor"
	case 12:
		return "over temperature"
	case 16:
		return "watchdog"
	}
	return fmt.Sprintf("unknown error %d", n)
}
