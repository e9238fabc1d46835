//go:build soak

package workerpool

import "testing"

// The ledger of a pool closes after a million submissions of every kind.
func TestSoakTheLedgerClosesAfterAMillionSubmissions(t *testing.T) {
	closesAfterEverything(t, 1000, 1000)
}
