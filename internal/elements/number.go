package elements

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxNoradID is the largest catalogue number: nine digits, as in an OMM.
const MaxNoradID = 999_999_999

// maxAlpha5 is the largest number that fits the five columns of a TLE.
const maxAlpha5 = 339_999

// alpha5 are the letters for 10 to 33: I and O are left out because they look
// like digits.
const alpha5 = "ABCDEFGHJKLMNPQRSTUVWXYZ"

// parseNorad reads the five number columns of a TLE: digits, blanks for
// leading zeros, or a letter for the first two digits (Alpha-5).
func parseNorad(s string) (int, error) {
	t := strings.TrimLeft(s, " ")
	if t == "" {
		return 0, fmt.Errorf("catalogue number is blank")
	}
	high := 0
	if c := t[0]; c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
		i := strings.IndexByte(alpha5, c)
		switch {
		case c >= 'a':
			return 0, fmt.Errorf("catalogue number %q: an Alpha-5 letter must be a capital", s)
		case i < 0:
			return 0, fmt.Errorf("catalogue number %q: Alpha-5 does not use I or O", s)
		case len(t) != 5:
			return 0, fmt.Errorf("catalogue number %q: an Alpha-5 letter needs four digits after it", s)
		}
		high, t = (i+10)*10000, t[1:]
	}
	n, err := parseDigits(t)
	if err != nil {
		return 0, fmt.Errorf("catalogue number %q is not a number", s)
	}
	if n += high; n == 0 {
		return 0, fmt.Errorf("catalogue number is 0")
	}
	return n, nil
}

// formatNorad is the five columns of a TLE; ok is false when the number does
// not fit them.
func formatNorad(n int) (s string, ok bool) {
	switch {
	case n < 0 || n > maxAlpha5:
		return "00000", false
	case n < 100_000:
		return fmt.Sprintf("%05d", n), true
	}
	return fmt.Sprintf("%c%04d", alpha5[n/10000-10], n%10000), true
}

// parseDigits reads an unsigned decimal of at most nine digits.
func parseDigits(s string) (int, error) {
	if s == "" || len(s) > 9 {
		return 0, strconv.ErrSyntax
	}
	n := 0
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' {
			return 0, strconv.ErrSyntax
		}
		n = n*10 + int(c-'0')
	}
	return n, nil
}

// parseDecimal reads a finite decimal number; an exponent only where exp is
// true. The standard parser alone would also take inf, nan, hex and
// underscores.
func parseDecimal(s string, exp bool) (float64, error) {
	digits := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c == '+' || c == '-' || c == '.':
		case exp && (c == 'e' || c == 'E'):
		default:
			return 0, strconv.ErrSyntax
		}
	}
	if digits == 0 || len(s) > 40 {
		return 0, strconv.ErrSyntax
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(x, 0) {
		return 0, strconv.ErrSyntax
	}
	return x, nil
}

// parseExp reads the "assumed decimal point" form of a TLE: sign, five
// digits, signed power of ten. Blanks count as zeros.
func parseExp(s string) (float64, error) {
	if strings.TrimSpace(s) == "" {
		return 0, nil
	}
	if len(s) != 8 {
		return 0, strconv.ErrSyntax
	}
	m, err := parseDigits(strings.ReplaceAll(s[1:6], " ", "0"))
	if err != nil {
		return 0, err
	}
	e, err := parseDigits(strings.ReplaceAll(s[7:8], " ", "0"))
	if err != nil {
		return 0, err
	}
	sign := 1.0
	switch s[0] {
	case '-':
		sign = -1
	case '+', ' ', '0':
	default:
		return 0, strconv.ErrSyntax
	}
	switch s[6] {
	case '-':
		e = -e
	case '+', ' ':
	default:
		return 0, strconv.ErrSyntax
	}
	// One rounding only: 73197e-9, not 0.73197 * 1e-4.
	x, err := strconv.ParseFloat(strconv.Itoa(m)+"e"+strconv.Itoa(e-5), 64)
	return sign * x, err
}

// formatExp is the inverse of parseExp: eight columns.
func formatExp(x float64) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return " 00000+0"
	}
	sign := byte(' ')
	if x < 0 {
		sign, x = '-', -x
	}
	// 'e' gives d.dddde±xx; the TLE wants 0.ddddd, one power higher.
	s := strconv.FormatFloat(x, 'e', 4, 64)
	e, _ := strconv.Atoi(s[7:])
	e++
	if e < -9 {
		return " 00000+0"
	}
	if e > 9 {
		return string(sign) + "99999+9"
	}
	return fmt.Sprintf("%c%s%s%+d", sign, s[0:1], s[2:6], e)
}
