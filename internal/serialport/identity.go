package serialport

import (
	"os"
	"path/filepath"
	"strings"

	"gsd-mcp/internal/unit"
)

// show makes a path from a configuration fit for a message.
func show(path string) string { return unit.Printable(path, 200) }

// usbIdentity reads vendor:product of the adapter behind a tty (its resolved
// name) from sysfs, or "" if it is not on USB. The tty's device link leads to
// the USB interface; the device is one to three directories above.
func usbIdentity(sysfs, tty string) string {
	if sysfs == "" {
		sysfs = "/sys"
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(sysfs, "class", "tty", filepath.Base(tty), "device"))
	if err != nil {
		return ""
	}
	for range 4 {
		vendor, product := hex4(filepath.Join(dir, "idVendor")), hex4(filepath.Join(dir, "idProduct"))
		if vendor != "" && product != "" {
			return vendor + ":" + product
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// hex4 reads a file of four hexadecimal digits, or "".
func hex4(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	s := strings.ToLower(strings.TrimSpace(string(b)))
	if len(s) != 4 || strings.Trim(s, "0123456789abcdef") != "" {
		return ""
	}
	return s
}
