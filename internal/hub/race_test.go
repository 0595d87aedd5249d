//go:build race

package hub

// underRace: the race detector multiplies memory.
const underRace = true
