//go:build soak

package app

import "testing"

// Twenty rolling restarts under load lose no request that was admitted.
func TestSoakTwentyRollingRestartsLoseNothing(t *testing.T) { restarted(t, 20) }
