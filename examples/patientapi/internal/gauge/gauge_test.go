package gauge

import (
	"sync"
	"testing"
)

func TestPeakIsTheMostAtOneTime(t *testing.T) {
	var g Gauge
	for _, n := range []int{3, 50, 7} {
		var in, out sync.WaitGroup
		in.Add(n)
		for range n {
			out.Go(func() {
				g.Enter()
				in.Done()
				in.Wait() // until all are inside
				g.Leave()
			})
		}
		out.Wait()
	}
	if g.Peak() != 50 || g.Now() != 0 {
		t.Errorf("peak %d, now %d; want 50, 0", g.Peak(), g.Now())
	}
}
