package limit

import (
	"testing"
	"time"
)

// A replica of five slots never had more than ten calls at a time. In a storm 32 were let in at once, and
// nearly none ended in time.
func TestALimitThatNothingTestedFollowsWhatRan(t *testing.T) {
	law := newAdaptive(forLatency)
	m := newModel(law, 0, 40*time.Millisecond)
	m.demand = 10
	if m.run(peakAfter - time.Second); law.Limit() != firstLimit {
		t.Errorf("soon after the start: %d, want %d", law.Limit(), firstLimit)
	}
	if m.run(peakAfter); law.Limit() != 10*headroom {
		t.Errorf("ten at a time: %d, want %d", law.Limit(), 10*headroom)
	}
	m.demand = 1
	if m.run(3 * peakLasts); law.Limit() != firstLimit/2 {
		t.Errorf("one at a time: %d, want %d", law.Limit(), firstLimit/2)
	}
	m.demand = 100 // the backend takes all of them
	if m.run(3 * time.Second); law.Limit() < 100 {
		t.Errorf("a hundred at a time, and nothing slows down: %d, %s", law.Limit(), law.State())
	}
}
