package processors

import (
	"testing"
	"time"
)

// A batch in the process makes goroutines wait for 300 ms, whatever is shed. Config.IgnoreProcessors says how long
// healthy work is shed meanwhile.
func TestATrialBesideABatchShedsAsLongAsDocumented(t *testing.T) {
	var c Control
	var began, pause []time.Duration // of the trials, and from the end of each to the next
	shedding := false
	for at := time.Duration(0); at < 5*time.Minute; at += Every {
		r := Reading{At: at, Processors: 2, Runnable: 100, Waited: 0.3, Squares: 0.3 * 0.3}
		r.Arrivals[1], r.Enforced = 2, 2
		c.Read(r)
		if sheds := c.Share() < 1; sheds != shedding {
			shedding = sheds
			if sheds {
				began = append(began, at)
			} else {
				pause = append(pause, at)
			}
		}
	}
	want := time.Duration(0)
	for i, end := range pause {
		took := end - began[i]
		if took < 600*time.Millisecond || took > 700*time.Millisecond { // two waits
			t.Errorf("trial %d took %v", i, took)
		}
		if i+1 < len(began) {
			want = min(max(2*want, vainPart*took), mostRest)
			if rests := began[i+1] - end; rests < want || rests > want+2*time.Second {
				t.Errorf("after trial %d: a pause of %v, want %v", i, rests, want)
			}
		}
	}
	if len(pause) < 5 || trialShare != 1./4 || trialFrom != 2 || leastTrial != time.Second/2 || longTrial != 2*time.Second || vainPart != 8 {
		t.Errorf("%d trials; the doc of limiter.Config.IgnoreProcessors has other figures", len(pause))
	}
}
