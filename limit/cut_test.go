package limit

import (
	"testing"
	"time"
)

// The backend waits up to 100 ms for a batch of 32. A cut below 32 made work take six times as
// long, and the law once took the rise for a slower backend. The baseline moved to the higher
// latency, and half a second after each cut came the next. A quarter of the throughput was lost.
func TestACutThatMakesWorkTakeLongerIsNotRepeatedSoon(t *testing.T) {
	a := newAdaptive(forLatency)
	a.phase, a.limit, a.known, a.proven = holding, 38, true, true
	a.base = mean{logOf(18 * time.Millisecond), 64}
	a.cuts.every = 2 * time.Second
	before := a.base
	at := 10 * time.Second
	a.tryLess(reading{at: at}, 30, 38, before, false)
	a.judgeCut(reading{at: at, elapsed: time.Second, logTime: logOf(117 * time.Millisecond), n: 24, inFlight: 30, enforced: 30, workSize: 100})
	if a.phase != holding || a.limit != 38 {
		t.Fatalf("limit %v, %s", a.limit, a.State())
	}
	if a.base != before {
		t.Errorf("the baseline is %+v, want it left at %+v", a.base, before)
	}
	if a.cuts.next < at+4*time.Second {
		t.Errorf("the next cut %v later", a.cuts.next-at)
	}
}

// If a cut because latency rose does not lower latency, the backend itself became slower.
func TestASuspicionThatLatencyDoesNotFollowMovesTheBaseline(t *testing.T) {
	a := newAdaptive(forLatency)
	a.phase, a.limit, a.known, a.proven = holding, 38, true, true
	a.base = mean{logOf(18 * time.Millisecond), 64}
	slow := logOf(117 * time.Millisecond)
	a.tryLess(reading{at: 1}, 30, 38, mean{slow, 300}, true)
	a.judgeCut(reading{at: time.Second, elapsed: time.Second, logTime: slow, n: 300, inFlight: 30, enforced: 30, workSize: 100})
	if a.limit != 38 || a.base.value != slow {
		t.Errorf("limit %v, baseline %+v", a.limit, a.base)
	}
}
