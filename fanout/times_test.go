package fanout

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestTimesKnowTheQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	l := times{high: 0.95}
	draw := func(scale float64) time.Duration {
		return time.Duration(scale * (1 + rng.ExpFloat64()) * float64(time.Millisecond))
	}
	if l.add(0, time.Second, 1); l.quick() != 0 || l.slow() != 0 {
		t.Error("one sample is not knowledge")
	}
	for _, scale := range []float64{1, 50, 0.01} { // each scale displaces the last
		var all []time.Duration
		for range 20_000 {
			d := draw(scale)
			all = append(all, d)
			l.add(0, d, 1)
		}
		slices.Sort(all)
		for _, c := range []struct {
			name string
			got  time.Duration
			q    float64
		}{{"quick", l.quick(), 0.1}, {"slow", l.slow(), 0.95}} {
			want := all[int(c.q*float64(len(all)))]
			if ratio := float64(c.got) / float64(want); ratio < 0.8 || ratio > 1.25 {
				t.Errorf("scale %v: %s is %v, want about %v", scale, c.name, c.got, want)
			}
		}
	}
}

// Every slow call is measured, but one quick call in sixteen. Unless a quick sample counts for
// sixteen calls, a branch that became quick looks slow sixteen times as long.
func TestTimesForgetSlowCallsAsSoonAsQuickOnes(t *testing.T) {
	l := times{high: 0.95}
	for range 2000 {
		l.add(0, 5*time.Millisecond, 1)
	}
	for range 1024 / 16 {
		l.add(0, 10*time.Microsecond, 16)
	}
	if quick := l.quick(); quick > 20*time.Microsecond {
		t.Errorf("after as many quick calls as are remembered, quick is %v", quick)
	}
}

// Fading by counts alone once kept samples of an hour ago for a thousand calls.
func TestTimesForgetByTheClock(t *testing.T) {
	l := times{high: 0.95}
	now := time.Duration(0)
	for range 2000 {
		now += time.Second
		l.add(now, time.Second, 1)
	}
	now += time.Hour
	for range 3 * minSamples {
		now += time.Second
		l.add(now, time.Millisecond, 1)
	}
	if quick := l.quick(); quick > 2*time.Millisecond {
		t.Errorf("an hour later, quick is still %v", quick)
	}
	for range 16 {
		now += time.Minute
		for range minSamples {
			l.add(now, time.Millisecond, 1)
		}
	}
	if slow := l.slow(); slow > 2*time.Millisecond {
		t.Errorf("minutes later, slow is still %v", slow)
	}
	if l.total < minSamples || l.total > 3*minSamples {
		t.Errorf("%d samples are kept of %d in a minute", l.total, minSamples)
	}
}
