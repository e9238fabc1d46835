//go:build soak

package main

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
)

// A hundred times a service is killed under load, and no record is lost; the next process
// is ready soon.
func TestSoakAHundredKillsLoseNoRecord(t *testing.T) {
	restarts := killedAgainAndAgain(t, 100, func() { time.Sleep(rand.N(100 * time.Millisecond)) }, inFile(t))
	soak.Within(t, "start after a kill until ready, median", restarts[len(restarts)/2], 2*time.Second,
		"a start that has read the whole chain, or waited for a lock that the dead process held, takes longer; of the slowest the machine may be the cause")
}

// A hundred times a service is killed whose records are in PostgreSQL, and no record is lost.
func TestSoakAHundredKillsLoseNoRecordInPostgres(t *testing.T) {
	killedAgainAndAgain(t, 100, nil, inPostgres(t))
}
