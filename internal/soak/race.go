package soak

import "testing"

// WithoutRace skips a long test under the race detector. Such a test starts processes or
// computes in one goroutine, where the detector finds little and takes several times as
// long. The gate runs the test without the detector (.ci/run, scripts/test-alloc.sh); the
// soak runs the test with it.
func WithoutRace(t *testing.T) {
	t.Helper()
	if raced && !soaking {
		t.Skip("a long test: runs without the race detector, and with it in the soak")
	}
}
