package gate

import (
	"testing"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// After a hang of ten seconds the upper quantile once came down by a thousandth of
// itself with each end. For twenty seconds all work that would have had to wait was
// refused as too late, with slots free.
func TestAHangIsForgottenWithTheMean(t *testing.T) {
	var s service
	now := time.Duration(0)
	end := func(n int, took time.Duration) {
		for range n {
			now += time.Millisecond
			s.end(now, 0, float64(took), 10, true, limit.Success)
		}
	}
	end(500, 20*time.Millisecond)
	end(50, 10*time.Second)
	end(1000, 20*time.Millisecond)
	if got := time.Duration(s.high); got > 500*time.Millisecond {
		t.Errorf("a second after the hang nearly all work is thought to take up to %v, not 20 ms", got)
	}
}
