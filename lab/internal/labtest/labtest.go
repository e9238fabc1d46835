// Package labtest holds helpers for the tests of experiments.
package labtest

import (
	"os"
	"testing"

	"github.com/spillway-go/spillway/lab/contestant"
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
