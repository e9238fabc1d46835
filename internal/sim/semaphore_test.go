package sim

import (
	"math"
	"testing"
)

// The sum of two costs once overflowed to a negative number, which is within any semaphore.
func TestACostAsLargeAsPossibleRunsAlone(t *testing.T) {
	huge, small := &call{class: &Class{Cost: math.MaxInt}}, &call{class: &Class{Cost: 1}}
	for _, c := range []struct {
		used int
		of   *call
		want bool
	}{{0, huge, true}, {1, huge, false}, {math.MaxInt, huge, false}, {math.MaxInt, small, false}, {3, small, true}, {4, small, false}} {
		p := &semaphore{n: 4, used: c.used}
		if got := p.fits(c.of); got != c.want {
			t.Errorf("a cost of %d beside %d: %v", c.of.class.Cost, c.used, got)
		}
	}
}
