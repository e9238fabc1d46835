//go:build soak

package audittest_test

import "testing"

// Each of three thousand changes to records is found.
func TestSoakEveryMutationIsFound(t *testing.T) { mutated(t, 3000) }

// Five hundred times Close races Record, and what was acknowledged is on record.
func TestSoakCloseRacesRecord(t *testing.T) { closeRaces(t, 500) }
