//go:build soak

package limiter

import "testing"

// In sixty long lives, repeated rejections are the same as decisions of the gate.
func TestSoakRefusingWithoutTheLockDecidesAsTheGateWould(t *testing.T) { decidesAsTheGate(t, 20, 3000) }

// No wake-up is lost while a hundred callers compete for a hundred thousand turns.
func TestSoakNoWakeUpIsLostWhileAllCompete(t *testing.T) { noWakeUpIsLost(t, 1000) }
