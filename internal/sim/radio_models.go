package sim

import (
	"fmt"
	"strings"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/unit"
)

// A radioRow is one simulated model.
type radioRow struct {
	name string
	make func(*clock.Clock) Radio
}

func radioRows() []radioRow {
	icom := func(m icomModel) func(*clock.Clock) Radio {
		return func(clk *clock.Clock) Radio { return newIcom(clk, m) }
	}
	portable := func(clk *clock.Clock) Radio {
		return newFT817(clk, [][2]int64{{100e3, 56e6}, {76e6, 154e6}, {420e6, 470e6}}, 0x0054, 0x007A)
	}
	mobile := func(clk *clock.Clock) Radio {
		return newFT817(clk, [][2]int64{{100e3, 56e6}, {76e6, 108e6}, {118e6, 164e6}, {420e6, 470e6}}, 0x0068, 0x008C)
	}
	return []radioRow{
		{"ic-9700", func(clk *clock.Clock) Radio { return NewIC9700(clk) }},
		{"ic-9100", icom(icomModel{addr: 0x7C, echo: true, dual: true, filter: true, data: true, ptt: true,
			satellite: []byte{0x16, 0x5A}, bands: vhfBands()})},
		{"ic-910h", icom(icomModel{addr: 0x60, echo: true, dual: true, ptt: true, txHz: true,
			satellite: []byte{0x1A, 0x07}, bands: vhfBands()})},
		{"ic-821h", icom(icomModel{addr: 0x4C, echo: true, dual: true, swapped: true, bands: vhfBands()[:2]})},
		{"ic-7100", icom(icomModel{addr: 0x88, echo: true, filter: true, data: true, ptt: true, bands: hfBands()})},
		{"ic-705", icom(icomModel{addr: 0xA4, byVFO: true, filter: true, data: true, ptt: true, txHz: true, bands: hfBands()})},
		{"ts-2000", func(clk *clock.Clock) Radio { return newTS2000(clk) }},
		{"ts-790", func(clk *clock.Clock) Radio { return newTS790(clk) }},
		{"ft-847", func(clk *clock.Clock) Radio { return newFT847(clk) }},
		{"ft-736r", func(clk *clock.Clock) Radio { return newFT736R(clk) }},
		{"ft-817", portable},
		{"ft-818", portable},
		{"ft-857", mobile},
		{"ft-897", mobile},
		{"ft-991a", func(clk *clock.Clock) Radio { return newFT991(clk) }},
	}
}

func vhfBands() [][2]int64 { return [][2]int64{{144e6, 148e6}, {430e6, 450e6}, {1240e6, 1300e6}} }

func hfBands() [][2]int64 { return [][2]int64{{30e3, 199_999_999}, {400e6, 470e6}} }

// RadioModels lists the models that NewRadio makes.
func RadioModels() []string {
	var names []string
	for _, r := range radioRows() {
		names = append(names, r.name)
	}
	return names
}

// bare is a model's name however it is written.
func bare(model string) string { return strings.ToLower(strings.ReplaceAll(model, "-", "")) }

// NewRadio makes a simulated radio: MAIN or VFO A on 145.800 MHz FM, SUB on
// 435.100 MHz FM or VFO B on 145.900 MHz FM.
func NewRadio(model string, clk *clock.Clock) (Radio, error) {
	for _, r := range radioRows() {
		if bare(r.name) == bare(model) {
			return r.make(clk), nil
		}
	}
	return nil, fmt.Errorf("no simulated radio is %q: choose one of %s", unit.Printable(model, 40), strings.Join(RadioModels(), ", "))
}
