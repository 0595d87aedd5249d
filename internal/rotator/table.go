package rotator

import (
	"fmt"
	"strings"

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
	best, bestCost := "", 4 // further off is no suggestion
	for _, d := range Drivers() {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
		if c := distance(unit.Printable(strings.ToLower(name), 40), d.Name); c < bestCost {
			best, bestCost = d.Name, c
		}
	}
	meant := "there are: " + strings.Join(names, ", ")
	if best != "" {
		meant = "did you mean " + best + "? " + meant
	}
	return Driver{}, fmt.Errorf("no rotator driver is called %q; %s", unit.Printable(name, 40), meant)
}

// distance is the number of single-letter edits between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
