package rotator

import (
	"context"
	"time"

	"gsd-mcp/internal/unit"
)

// EasyComm I goes one way: the set also carries the radio's fields, which stay
// empty here, and nothing ever comes back (source: easycomm.txt; Hamlib model
// 201). The stop is EasyComm II's, which every controller tried understands.
func easycomm1Driver() Driver {
	d := Driver{
		Name: "easycomm1", Title: "EasyComm I (cannot tell its position)", Baud: 9600, Hamlib: 201,
		Caps: Caps{
			ResolutionDeg: 0.1, AzMinDeg: 0, AzMaxDeg: 360, ElMinDeg: 0, ElMaxDeg: 180,
			MinInterval: 50 * time.Millisecond, Reply: 500 * time.Millisecond, Settle: 2 * time.Second,
		},
		Allowed: "AZELSUPDNX0123456789. \n",
	}
	d.New = func(l Link) Rotator { return &easycomm1{easycomm{newWire(d, l), " UP000 XXX DN000 XXX"}} }
	return d
}

type easycomm1 struct{ easycomm }

func (e *easycomm1) Position(context.Context) (unit.AzEl, error) {
	return unit.AzEl{}, noFeedback(e.name)
}
