package rotator

import (
	"fmt"
	"strings"

	"gsd-mcp/internal/spell"
	"gsd-mcp/internal/unit"
)

// Drivers is the table of drivers: one row per protocol, in the order of the
// documentation.
func Drivers() []Driver {
	return []Driver{
		easycomm1Driver(),
		easycomm2Driver(),
		easycomm3Driver(),
		satnogsDriver(),
		gs232aDriver(),
		gs232bDriver(),
		gs232azDriver(),
		k3ngDriver(),
		rot1progDriver(),
		rot2progDriver(),
		md01Driver(),
		md01FineDriver(),
		rc2800Driver(),
		rc2800EarlyDriver(),
		dcu1Driver(),
		rotorezDriver(),
		ercDriver(),
		yrc1Driver(),
		rt21Driver(),
		rotctldDriver(),
	}
}

// Lookup finds a driver by its name in the configuration. The error for a name
// that is not there says what was probably meant.
func Lookup(name string) (Driver, error) {
	var names []string
	for _, d := range Drivers() {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	meant := "there are: " + strings.Join(names, ", ")
	if best := spell.Nearest(name, names); best != "" {
		meant = "did you mean " + best + "? " + meant
	}
	return Driver{}, fmt.Errorf("no rotator driver is called %q; %s", unit.Printable(name, 40), meant)
}
