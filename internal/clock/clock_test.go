package clock

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestATimeWithAMonotonicReadingStaysAsItIs(t *testing.T) {
	for _, at := range []time.Time{time.Now(), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)} {
		if got := Monotonic(at); got != at {
			t.Errorf("%v became %v", at, got)
		}
	}
}

func TestATimeOfTheWallClockGetsAMonotonicReading(t *testing.T) {
	for _, d := range []time.Duration{-time.Hour, 0, time.Hour} {
		for name, at := range map[string]time.Time{
			"rounded": time.Now().Add(d).Round(0),
			"in UTC":  time.Now().Add(d).UTC(),
			"decoded": time.Unix(0, time.Now().Add(d).UnixNano()),
		} {
			got := Monotonic(at)
			if got == got.Round(0) {
				t.Errorf("%s: no monotonic reading in %v", name, got)
			}
			// Both readings are of one moment, as long as nobody sets the clock of the machine.
			if off := got.Round(0).Sub(at); off.Abs() > time.Minute {
				t.Errorf("%s: %v later", name, off)
			}
		}
	}
}

// The deadline of context.WithTimeout(ctx, math.MaxInt64) has no monotonic reading.
func TestTheFarFutureStaysFarAway(t *testing.T) {
	base := time.Now()
	for _, at := range []time.Time{time.Now().Add(math.MaxInt64), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if left := Monotonic(at).Sub(base); left < 100*365*24*time.Hour {
			t.Errorf("%v is %v away", at, left)
		}
	}
	if left := Monotonic(time.Time{}).Sub(base); left > -100*365*24*time.Hour {
		t.Errorf("the zero time is %v away", left)
	}
}

func TestOnlyTheTimeOfABubbleIsVirtual(t *testing.T) {
	if Virtual(time.Now()) {
		t.Error("real time is virtual")
	}
	synctest.Test(t, func(t *testing.T) {
		if !Virtual(time.Now()) {
			t.Error("the time of a bubble is real")
		}
	})
}

// A bubble of testing/synctest has no monotonic clock, and its wall clock is exact.
func TestATimeOfABubbleStaysAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if at := time.Now().Add(time.Second); !Monotonic(at).Equal(at) {
			t.Errorf("%v became %v", at, Monotonic(at))
		}
	})
}
