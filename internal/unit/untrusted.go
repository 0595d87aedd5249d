package unit

import (
	"strings"
	"unicode"
)

// Printable makes text from outside (element names, device banners, client
// names) safe to show: control, format, bidirectional and invisible characters
// (which can carry hidden text) and line breaks go, runs of blanks become one, and at most max runes remain. What is
// left is still data and never an instruction.
func Printable(s string, max int) string {
	var b strings.Builder
	n, blank := 0, false
	for _, r := range strings.ToValidUTF8(s, "") {
		if unicode.IsSpace(r) {
			blank = b.Len() > 0
			continue
		}
		if unicode.In(r, unicode.C, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
			continue
		}
		if blank {
			if n++; n > max {
				break
			}
			b.WriteByte(' ')
			blank = false
		}
		if n++; n > max {
			break
		}
		b.WriteRune(r)
	}
	return strings.TrimRight(b.String(), " ")
}
