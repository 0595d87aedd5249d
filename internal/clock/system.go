package clock

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// SystemReader reads this computer's clocks. root is "/" outside of tests: the
// time service is found by what it leaves in root/run.
//
// The state word of adjtimex is not used: chronyd without RTC synchronisation
// leaves STA_UNSYNC set with all well (systemd PR 13245), and a clock restored
// from a file at boot is plausible and wrong. Only maxerror says how far off it
// may be.
func SystemReader(root string) func() (Sample, error) {
	return func() (Sample, error) {
		var before, after unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &before); err != nil {
			return Sample{}, fmt.Errorf("clock_gettime: %w", err)
		}
		wall := time.Now().Round(0) // without its monotonic reading
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &after); err != nil {
			return Sample{}, fmt.Errorf("clock_gettime: %w", err)
		}
		var t unix.Timex // Modes 0: it reads and changes nothing
		if _, err := unix.Adjtimex(&t); err != nil {
			return Sample{}, fmt.Errorf("adjtimex: %w", err)
		}
		return Sample{
			Wall:     wall,
			Mono:     time.Duration(before.Nano()/2 + after.Nano()/2),
			MaxError: time.Duration(t.Maxerror) * time.Microsecond,
			Source:   service(root),
		}, nil
	}
}

// service names the time service that runs, by its files; "" when none is seen.
func service(root string) string {
	for _, s := range []struct{ name, file string }{
		{"chrony", "run/chrony/chronyd.pid"},
		{"ntpsec", "run/ntpd.pid"},
		{"timesyncd", "run/systemd/timesync/synchronized"}, // written at the first synchronisation
	} {
		if _, err := os.Stat(filepath.Join(root, s.file)); err == nil {
			return s.name
		}
	}
	return ""
}
