package rotator

import (
	"strings"
	"testing"
)

func FuzzEasycommReply(f *testing.F) {
	for _, s := range []string{
		"AZ123.4 EL45.6\n", "AZ269.8 EL44.9 ", "+269.8 +44.9 ", "AL HOME AZ ERROR\nAZ1 EL2\r\n", "AZ EL \nAZ1 EL2\n",
		"AZnan ELinf\n", "AZ0x10 EL1e2\n", "AZ12", "\xff\x00AZ1 EL1\n", "AZ1,5 EL2\n", strings.Repeat("A", 200),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		at, rest, v := easycommTake(s)
		if v == replyGot && (!at.Finite() || at.AzDeg < -9999 || at.AzDeg > 9999) {
			t.Errorf("%q read as %v", s, at)
		}
		if len(rest) > len(s) || v == replyMore && len(rest) > lineMax {
			t.Errorf("%q: %d bytes left, %v", s, len(rest), v)
		}
	})
}
