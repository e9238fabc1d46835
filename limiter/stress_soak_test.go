//go:build soak

package limiter

import "testing"

// Whoever decides on refusals, the lock's holder or a repeated answer, decides the same in
// sixty long lives.
func TestSoakRefusingWithoutTheLockDecidesAsTheGateWould(t *testing.T) { decidesAsTheGate(t, 20, 3000) }

// No wake-up is lost while a hundred callers compete for a hundred thousand turns.
func TestSoakNoWakeUpIsLostWhileAllCompete(t *testing.T) { noWakeUpIsLost(t, 1000) }
