//go:build soak

package audittest_test

import "testing"

// Five hundred times Close races Record, and what was acknowledged is on record.
func TestSoakCloseRacesRecord(t *testing.T) { closeRaces(t, 500) }
