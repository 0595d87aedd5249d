package radio

import (
	"fmt"
	"strings"

	"gsd-mcp/internal/unit"
)

// formatHz writes a frequency the way operators read it: 145.800000 MHz.
func formatHz(hz int64) string {
	sign, u := "", uint64(hz)
	if hz < 0 {
		sign, u = "-", uint64(-hz)
	}
	return fmt.Sprintf("%s%d.%06d MHz", sign, u/1e6, u%1e6)
}

func formatRanges(rs []Range) string {
	s := make([]string, len(rs))
	for i, r := range rs {
		s[i] = fmt.Sprintf("%g..%g", float64(r.MinHz)/1e6, float64(r.MaxHz)/1e6)
	}
	return strings.Join(s, ", ") + " MHz"
}

func joinModes(ms []Mode) string {
	s := make([]string, len(ms))
	for i, m := range ms {
		s[i] = string(m)
	}
	return strings.Join(s, ", ")
}

// printable makes text from outside safe to put into an error.
func printable(s string) string { return unit.Printable(s, 40) }

// failure says which radio did what when an error came; nil stays nil.
func failure(radio, doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s: %w", radio, doing, err)
}
