package loadgen

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

var profiles = map[string][]Leg{
	"ramp up":   {{0, 400, 10 * time.Second}},
	"ramp down": {{400, 0, 10 * time.Second}},
	"steps":     {Steady(100, time.Second), Steady(300, 2*time.Second), Steady(50, time.Second)},
	"pauses":    {Steady(0, time.Second), {100, 500, 3 * time.Second}, Steady(0, time.Second), Steady(10, time.Second)},
	"on, off":   Repeat(5500*time.Millisecond, Steady(1000, 100*time.Millisecond), Steady(0, 900*time.Millisecond)),
}

// dueBy returns how many requests are due by t, added up in small steps.
func dueBy(legs []Leg, t time.Duration) float64 {
	sum := 0.0
	for _, leg := range legs {
		const steps = 1000
		part := min(t, leg.For)
		for i := range steps {
			middle := (float64(i) + 0.5) / steps * part.Seconds() / leg.For.Seconds()
			sum += (leg.From + (leg.To-leg.From)*middle) * part.Seconds() / steps
		}
		if t -= part; t <= 0 {
			break
		}
	}
	return sum
}

func TestEvenRequestsStartWhenTheRateAddsUpToThem(t *testing.T) {
	for name, legs := range profiles {
		length := time.Duration(0)
		for _, leg := range legs {
			length += leg.For
		}
		times := slices.Collect(Times(Even(legs...)))
		if total := dueBy(legs, length); math.Abs(float64(len(times))-math.Ceil(total-1e-6)) > 0 {
			t.Errorf("%s: %d requests, want %v", name, len(times), total)
		}
		if at, ok := Even(legs...).At(math.MaxUint64); ok || at != length {
			t.Errorf("%s: past the end %v %v, want its length %v", name, at, ok, length)
		}
		for n, at := range times {
			if due := dueBy(legs, at); math.Abs(due-float64(n)) > 0.01 {
				t.Fatalf("%s: request %d starts at %v, when %.3f are due", name, n, at, due)
			}
		}
	}
}

func TestRandomRequestsFollowTheRate(t *testing.T) {
	legs := []Leg{{0, 2000, 10 * time.Second}, Steady(0, time.Second), Steady(500, 10*time.Second)}
	for seed := range uint64(10) {
		times := slices.Collect(Times(Random(seed, legs...)))
		for end := time.Second; end <= 21*time.Second; end += time.Second {
			n, _ := slices.BinarySearch(times, end)
			due := dueBy(legs, end)
			if math.Abs(float64(n)-due) > 5*math.Sqrt(due) {
				t.Errorf("seed %d: %d requests in %v, want %.0f ± 5σ", seed, n, end, due)
			}
		}
		if !slices.Equal(times, slices.Collect(Times(Random(seed, legs...)))) {
			t.Errorf("seed %d gave two schedules", seed)
		}
	}
	if slices.Equal(slices.Collect(Times(Random(1, legs...))), slices.Collect(Times(Random(2, legs...)))) {
		t.Error("two seeds gave the same schedule")
	}
}

func TestAProfileKeepsItsLegs(t *testing.T) {
	legs := []Leg{Steady(10, time.Second)}
	even, random := Even(legs...), Random(1, legs...)
	legs[0] = Steady(1, time.Second) // for the next profile
	if got := len(slices.Collect(Times(even))); got != 10 {
		t.Errorf("%d requests, want 10", got)
	}
	if !slices.Equal(slices.Collect(Times(random)), slices.Collect(Times(Random(1, Steady(10, time.Second))))) {
		t.Error("the random requests follow another rate")
	}
}

func TestRepeatFillsTheTime(t *testing.T) {
	got := Repeat(25*time.Second, Leg{0, 100, 10 * time.Second})
	want := []Leg{{0, 100, 10 * time.Second}, {0, 100, 10 * time.Second}, {0, 50, 5 * time.Second}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Repeat(time.Second, Steady(1, 0)); got != nil {
		t.Errorf("legs without length: %v", got)
	}
}

func TestLegsAreRead(t *testing.T) {
	legs, err := ParseLegs("100:10s, 100-500 : 30s,0:500ms")
	if want := []Leg{Steady(100, 10*time.Second), {100, 500, 30 * time.Second}, Steady(0, 500*time.Millisecond)}; err != nil || !slices.Equal(legs, want) {
		t.Errorf("%v, %v, want %v", legs, err, want)
	}
	for text, want := range map[string]string{
		"": "want RATE:TIME", "100": "want RATE:TIME", "100:10": "want RATE:TIME", "1:1s,": "want RATE:TIME", "a:1s": "want RATE:TIME", "1-2-3:1s": "want RATE:TIME",
		"-1:1s": "want RATE:TIME", "2e9:1s": "from 0 to 1e9", "nan:1s": "from 0 to 1e9", "inf:1s": "from 0 to 1e9", "1:0s": "more than 0", "1:-1s": "more than 0",
		"1:9999h,1:9999h": "less than", "0:1s": "without requests",
	} {
		if legs, err := ParseLegs(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %v, %v, want an error with %q", text, legs, err, want)
		}
	}
}

func FuzzParseLegs(f *testing.F) {
	for _, s := range []string{"100:10s,100-500:30s,0:5s", "0.1-1e3:1h", "1:1ns", " 5 - 6 : 1s "} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		legs, err := ParseLegs(s)
		if err != nil {
			if legs != nil || strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q: %v beside %q", s, legs, err)
			}
			return
		}
		for _, schedule := range []Schedule{Even(legs...), Random(1, legs...)} {
			var before time.Duration
			next := walk(schedule)
			for n := range uint64(100) {
				at, ok := next()
				if at < before {
					t.Fatalf("%q: request %d at %v, after %v", s, n, at, before)
				}
				if again, sameOK := schedule.At(n); again != at || sameOK != ok {
					t.Fatalf("%q: request %d at %v, and asked again %v", s, n, at, again)
				}
				before = at
			}
		}
	})
}
