package rate

import (
	"math"
	"testing"
	"time"
)

func TestSteadyEventsAreMeasuredWithinAFewPercent(t *testing.T) {
	var m Meter
	for at := time.Duration(0); at < 5*time.Second; at += 4 * time.Millisecond {
		m.Add(at, 1)
		if at > 500*time.Millisecond {
			if got := m.PerSecond(at); math.Abs(got-250) > 10 {
				t.Fatalf("at %v: %v per second, want 250", at, got)
			}
		}
	}
}

func TestSilenceIsZeroAfterTwoWindows(t *testing.T) {
	var m Meter
	if m.PerSecond(time.Second) != 0 {
		t.Fatal("a fresh meter has a rate")
	}
	m.Add(time.Second, 100)
	if got := m.PerSecond(3500 * time.Millisecond); got != 0 {
		t.Fatalf("%v per second after 2.5 silent seconds", got)
	}
}

func TestAChangeIsFollowedWithinTwoWindows(t *testing.T) {
	var m Meter
	at := time.Duration(0)
	for ; at < 3*time.Second; at += 10 * time.Millisecond {
		m.Add(at, 1)
	}
	for ; at < 5*time.Second; at += 100 * time.Millisecond {
		m.Add(at, 1)
	}
	if got := m.PerSecond(at); math.Abs(got-10) > 1.5 {
		t.Fatalf("%v per second, want 10", got)
	}
}
