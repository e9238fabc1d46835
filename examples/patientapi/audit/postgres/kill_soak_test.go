//go:build soak

package postgres

import "testing"

// A hundred processes are killed while they write, and the chain has all that they have
// acknowledged.
func TestSoakAHundredKillsLoseNoRecord(t *testing.T) { killedAgainAndAgain(t, 100) }
