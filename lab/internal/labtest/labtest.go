// Package labtest holds helpers for the tests of experiments.
package labtest

import (
	"os"
	"slices"
	"testing"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/results"
)

// Main is the TestMain of a package that starts contestants: the test binary runs
// their roles.
func Main(m *testing.M, roles map[string]contestant.Role) {
	if code, ok := contestant.Main(roles); ok {
		os.Exit(code)
	}
	// The race detector makes every process sleep a second at its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// Claim returns the verdict on a claim in a set-up, and fails the test if there is
// none.
func Claim(t *testing.T, judged []results.OldClaim, id, setup string) results.OldClaim {
	t.Helper()
	i := slices.IndexFunc(judged, func(c results.OldClaim) bool { return c.ID == id && c.Setup == setup })
	if i < 0 {
		t.Fatalf("%s (%s) was not judged", id, setup)
	}
	return judged[i]
}
