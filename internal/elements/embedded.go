package elements

import _ "embed"

// snapshot is a small set of public elements of August 2026 (US Space Force GP
// data, redistributed by CelesTrak): weather, amateur, crewed and geostationary
// satellites, without those that were about to decay.
//
//go:embed snapshot.3le
var snapshot string

// Embedded returns the elements that are built into the program, for the
// simulated station and for a first look. They are of August 2026: a real
// station must not point with them.
func Embedded() []Set {
	return Parse("embedded", []byte(snapshot)).Sets
}
