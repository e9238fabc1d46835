// Package require ends a test that cannot go on.
package require

import "testing"

// NoError ends the test with err, unless err is nil.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
