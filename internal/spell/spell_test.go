package spell

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"latitude_deg", "longitude_deg", "id", "password_file", "rotator", "baud"}
	tests := []struct{ word, want string }{
		{"lattitude_deg", "latitude_deg"},
		{"latitude", "latitude_deg"},
		{"Longitude-deg", "longitude_deg"},
		{"password", "password_file"},
		{"rotor", "rotator"},
		{"buad", "baud"}, // neighbours swapped
		{"ID", "id"},
		{"x", ""},
		{"", ""},
		{"elevation", ""},
		{strings.Repeat("a", 1e6), ""},
	}
	for _, tt := range tests {
		if got := Nearest(tt.word, names); got != tt.want {
			t.Errorf("Nearest(%.20q) = %q, want %q", tt.word, got, tt.want)
		}
	}
	if got := Nearest("x", nil); got != "" {
		t.Errorf("among no names: %q", got)
	}
}
