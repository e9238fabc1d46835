//go:build soak

package objectpool

import "testing"

// Each of the seeded misuses is caught in each of twenty processes.
func TestSoakEverySeededMisuseIsCaughtEveryTime(t *testing.T) { everyMisuseIsCaught(t, 20) }

// A million cycles of correct use raise no alarm.
func TestSoakCorrectUseRaisesNoAlarm(t *testing.T) { correctUseRaisesNoAlarm(t, 1_000_000) }
