// Package assert reports what is wrong, and lets the test go on.
package assert

import "testing"

// NoError fails the test with err, unless err is nil.
func NoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
