//go:build soak

package simulate

import "testing"

// Passing means that the fleets show what they promise with twenty replicas too.
func TestSoakLargerFleetsShowWhatTheyPromise(t *testing.T) { promised(t, 2) }
