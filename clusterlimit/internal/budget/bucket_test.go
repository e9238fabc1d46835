package budget

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Over any time no more is taken than the rate brings, one burst and one request.
func FuzzABucketGivesNoMoreThanItsRate(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 2))
		var b Bucket
		now, until, rate := time.Duration(0), time.Duration(0), 0
		brought, taken := 0., 0. // since the start
		most := 0.
		for range 2000 {
			passed := time.Duration(r.IntN(int(20 * time.Millisecond)))
			brought += float64(max(min(now+passed, until)-now, 0)) / 1e9 * float64(rate)
			now += passed
			if r.IntN(20) == 0 {
				rate, until = r.IntN(5000), now+time.Duration(r.IntN(int(time.Second)))
				b.Set(now, rate, until)
			}
			n := 1 + r.IntN(4)
			ok, wait := b.Take(now, n)
			if ok {
				taken += float64(n)
			}
			most = max(most, float64(n))
			switch {
			case ok && (now >= until || rate == 0):
				t.Fatalf("taken after the end, %v", now-until)
			case taken > brought+most+1e-6:
				t.Fatalf("%v taken of %v", taken, brought)
			case !ok && wait > 0 && now+wait < until:
				again := b
				if ok, _ := again.Take(now+wait, n); !ok {
					t.Fatalf("%d not there after %v", n, wait)
				}
			}
		}
	})
}

func TestABusyBucketGivesItsRate(t *testing.T) {
	var b Bucket
	b.Set(0, 1000, time.Hour)
	taken := 0
	for now := time.Duration(0); now < 10*time.Second; now += 100 * time.Microsecond {
		if ok, _ := b.Take(now, 1); ok {
			taken++
		}
	}
	if math.Abs(float64(taken)-10_000) > 2 {
		t.Errorf("%d in ten seconds at 1,000 a second", taken)
	}
}

func TestARateThatReturnsBringsNoBurst(t *testing.T) {
	var b Bucket
	b.Set(0, 1000, time.Hour)
	b.Set(time.Second, 0, time.Hour) // full, and given back
	b.Set(2*time.Second, 1000, time.Hour)
	if ok, _ := b.Take(2*time.Second, 1); ok {
		t.Error("a token was kept that was given back")
	}
}
