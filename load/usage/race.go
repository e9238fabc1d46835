//go:build race

package usage

// Race reports whether this program was built with the race detector, which ends it
// at a data race.
const Race = true
