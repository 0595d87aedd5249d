package health

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Presence of a sensor. A sensor that is not fitted fires no rule; one that is
// fitted and cannot be read does.
const (
	Measured  = "measured"
	Suspect   = "suspect"
	NotFitted = "not_fitted"
)

// Bits of get_throttled (raspberrypi/linux 2397): what is the case now, and,
// shifted by 16, what was since the start.
const (
	bitUnderVoltage = 1 << iota
	bitFrequencyCapped
	bitThrottled
	bitSoftTemperature
)

// Power is what the board says of its supply.
type Power struct {
	Presence     string `json:"presence"`
	UnderVoltage bool   `json:"under_voltage"`            // below 4.63 V now
	SinceBoot    bool   `json:"under_voltage_since_boot"` // or at any time since the start
	Throttled    bool   `json:"throttled"`                // the processor is slowed down now
	ThrottledWas bool   `json:"throttled_since_boot"`
	Why          string `json:"why,omitempty"` // of Suspect
}

// Heat is the processor's temperature.
type Heat struct {
	Presence string  `json:"presence"`
	TempC    float64 `json:"temperature_c"`
	Why      string  `json:"why,omitempty"`
}

// Card is what ext4 says of the disks that are mounted.
type Card struct {
	Presence string `json:"presence"`
	Errors   int    `json:"errors"`           // counted by the file system since it was last repaired
	Device   string `json:"device,omitempty"` // the one with the most
	Why      string `json:"why,omitempty"`
}

// Board is what a Raspberry Pi, or another computer, says of itself.
type Board struct {
	Model string `json:"model"` // "" when the computer does not say
	Power Power  `json:"power"`
	Heat  Heat   `json:"heat"`
	Card  Card   `json:"card"`
}

// hotC is where the firmware is about to slow the processor down (80 °C).
const hotC = 75

// ReadBoard reads the facts below root, which is "/" outside of tests.
func ReadBoard(root string) Board {
	return Board{Model: model(root), Power: readPower(root), Heat: readHeat(root), Card: readCard(root)}
}

func model(root string) string {
	b, err := readSmall(filepath.Join(root, "proc/device-tree/model"))
	if err != nil {
		return ""
	}
	return strings.Trim(b, "\x00 \n")
}

// readPower joins two sources: the alarm of the rpi_volt sensor, and the
// firmware's get_throttled where the kernel still offers it.
func readPower(root string) Power {
	p := Power{Presence: NotFitted}
	suspect := func(err error) {
		p.Presence, p.Why = Suspect, err.Error()
	}
	if dir := hwmon(root, "rpi_volt"); dir != "" {
		n, err := readInt(filepath.Join(dir, "in0_lcrit_alarm"), 10)
		if err == nil && n != 0 && n != 1 {
			err = fmt.Errorf("in0_lcrit_alarm is %d, not 0 or 1", n)
		}
		if err != nil {
			suspect(err)
		} else {
			p.Presence, p.UnderVoltage, p.SinceBoot = Measured, n == 1, n == 1
		}
	}
	bits, err := readInt(filepath.Join(root, "sys/devices/platform/soc/soc:firmware/get_throttled"), 16)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		if p.Presence == NotFitted {
			suspect(err)
		}
	default:
		p.UnderVoltage = p.UnderVoltage || bits&bitUnderVoltage != 0
		p.SinceBoot = p.SinceBoot || p.UnderVoltage || bits&(bitUnderVoltage<<16) != 0
		slowed := bitFrequencyCapped | bitThrottled | bitSoftTemperature
		p.Throttled = bits&slowed != 0
		p.ThrottledWas = p.Throttled || bits&(slowed<<16) != 0
		if p.Presence == NotFitted {
			p.Presence = Measured
		}
	}
	return p
}

// hwmon finds the folder of a sensor by its name; their numbers change.
func hwmon(root, name string) string {
	dirs, err := filepath.Glob(filepath.Join(root, "sys/class/hwmon/hwmon*"))
	if err != nil {
		return ""
	}
	for _, d := range dirs {
		if got, err := readSmall(filepath.Join(d, "name")); err == nil && strings.TrimSpace(got) == name {
			return d
		}
	}
	return ""
}

func readHeat(root string) Heat {
	milli, err := readInt(filepath.Join(root, "sys/class/thermal/thermal_zone0/temp"), 10)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Heat{Presence: NotFitted}
	case err == nil && !(milli > -60_000 && milli < 150_000):
		err = fmt.Errorf("it reads %d, which is no temperature in thousandths of a degree", milli)
	}
	if err != nil {
		return Heat{Presence: Suspect, Why: err.Error()}
	}
	return Heat{Presence: Measured, TempC: float64(milli) / 1000}
}

func readCard(root string) Card {
	files, err := filepath.Glob(filepath.Join(root, "sys/fs/ext4/*/errors_count"))
	if err != nil || len(files) == 0 {
		return Card{Presence: NotFitted}
	}
	slices.Sort(files)
	c := Card{Presence: Measured}
	for _, f := range files {
		n, err := readInt(f, 10)
		if err == nil && n < 0 {
			err = fmt.Errorf("errors_count is %d", n)
		}
		if err != nil {
			return Card{Presence: Suspect, Why: err.Error()}
		}
		if n > c.Errors {
			c.Errors, c.Device = n, filepath.Base(filepath.Dir(f))
		}
	}
	return c
}

// Low reports whether the supply forbids new motion and transmission, and why.
// A fitted sensor that cannot be read counts as low (rule 4 of docs/safety.md).
func (p Power) Low() (why string, low bool) {
	switch {
	case p.Presence == Suspect:
		return "the supply voltage cannot be read: " + p.Why, true
	case p.UnderVoltage:
		return "the supply is below 4.63 V now", true
	}
	return "", false
}

// Findings says what of the board somebody should know.
func (b Board) Findings() []Finding {
	var out []Finding
	add := func(code, severity, title, cause, next string) {
		out = append(out, Finding{Code: code, Severity: severity, Title: title, Cause: cause, NextStep: next})
	}
	const supply = "use the board's own power supply and a short, thick cable; take other devices off the USB ports"
	switch why, low := b.Power.Low(); {
	case low && b.Power.Presence == Suspect:
		add("POWER_UNREADABLE", Unsafe, "supply voltage unknown", why, "restart the computer; if it stays, the kernel or the board is at fault")
	case low:
		add("UNDER_VOLTAGE", Unsafe, "supply voltage too low", why, supply)
	case b.Power.SinceBoot:
		add("UNDER_VOLTAGE_PAST", Warning, "supply voltage was too low", "the supply was below 4.63 V at some time since the start", supply)
	}
	if b.Power.Throttled {
		add("THROTTLED", Warning, "processor slowed down", "the firmware has slowed the processor down, for heat or for want of current", "cool the board, and check its supply")
	}
	switch {
	case b.Heat.Presence == Suspect:
		add("HEAT_UNREADABLE", Warning, "temperature unknown", "the processor's temperature cannot be read: "+b.Heat.Why, "restart the computer")
	case b.Heat.Presence == Measured && !(b.Heat.TempC < hotC):
		add("HOT", Warning, "processor hot", fmt.Sprintf("the processor is at %.0f °C, the firmware slows it down at 80", b.Heat.TempC), "give the board air and shade")
	}
	switch {
	case b.Card.Presence == Suspect:
		add("CARD_UNREADABLE", Warning, "disk health unknown", "the file system's error count cannot be read: "+b.Card.Why, "restart the computer")
	case b.Card.Errors > 0:
		add("CARD_ERRORS", Unsafe, "disk failing", fmt.Sprintf("the file system on %s has counted %d errors", b.Card.Device, b.Card.Errors), "copy the state directory away, then replace the card")
	}
	return out
}

// maxSmall bounds what is read of a file that should hold one number or name.
const maxSmall = 256

func readSmall(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	buf := make([]byte, maxSmall)
	n, err := f.Read(buf)
	if n == 0 && err != nil {
		return "", fmt.Errorf("read %s: %w", filepath.Base(path), err)
	}
	return string(buf[:n]), nil
}

func readInt(path string, base int) (int, error) {
	s, err := readSmall(path)
	if err != nil {
		return 0, err
	}
	s = strings.TrimSpace(s)
	if base == 16 {
		s = strings.TrimPrefix(s, "0x")
	}
	n, err := strconv.ParseInt(s, base, 32)
	if err != nil {
		return 0, fmt.Errorf("read %s: %.20q is no number", filepath.Base(path), s)
	}
	return int(n), nil
}
