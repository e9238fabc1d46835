package budget

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// flow counts the tokens taken.
type flow struct {
	taken, least float64 // least is the minimum of taken minus brought
}

// begin and beyond compute the largest excess of taken over brought tokens, over all intervals that
// end now.
func (f *flow) begin(brought float64) { f.least = min(f.least, f.taken-brought) }

func (f *flow) beyond(brought float64) float64 { return f.taken - brought - f.least }

// Over any time the tokens taken are at most the tokens that the rate brings plus the savings: a
// burst, or the largest request. Requests of at most a burst find at most a burst, whatever is
// saved for others. From the start on, no token is taken before the rate has brought it.
func FuzzABucketGivesNoMoreThanItsRate(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		const rest = 2e-3 // rounding error
		r := rand.New(rand.NewPCG(seed, 2))
		var b Bucket
		now, until, rate := time.Duration(0), time.Duration(0), 0
		var all, small flow
		brought, burst, most := 0., 1., 1.
		for range 2000 {
			passed := time.Duration(r.IntN(int(20 * time.Millisecond)))
			brought += float64(max(min(now+passed, until)-now, 0)) / 1e9 * float64(rate)
			now += passed
			if r.IntN(20) == 0 {
				rate, until = r.IntN(5000), now+time.Duration(r.IntN(int(time.Second)))
				b.Set(now, rate, until)
				burst = max(burst, float64(rate)/10)
			}
			n := 1 + r.IntN(4)
			if r.IntN(10) == 0 {
				n = 1 + r.IntN(1<<r.IntN(20))
			}
			all.begin(brought)
			small.begin(brought)
			ok, wait := b.Take(now, n)
			if wait != Never {
				most = max(most, float64(n))
			}
			if ok {
				all.taken += float64(n)
			}
			if ok && float64(n) <= max(float64(rate)/10, 1) {
				small.taken += float64(n)
			}
			switch {
			case ok && (now >= until || rate == 0):
				t.Fatalf("taken after the end, %v", now-until)
			case all.taken > brought+rest:
				t.Fatalf("%v taken of %v", all.taken, brought)
			case all.beyond(brought) > max(most, burst)+rest:
				t.Fatalf("%v beyond the rate, with bursts of %v and requests of %v", all.beyond(brought), burst, most)
			case small.beyond(brought) > burst+rest:
				t.Fatalf("%v beyond the rate by small requests, with bursts of %v", small.beyond(brought), burst)
			case wait == Never && float64(n) <= float64(rate)*SaveTime.Seconds():
				t.Fatalf("%d are never there at %d a second", n, rate)
			case !ok && wait > 0 && now+wait < until:
				again := b
				if ok, _ := again.Take(now+wait, n); !ok {
					t.Fatalf("%d not there after %v", n, wait)
				}
			}
		}
	})
}

// At a rate of 10, a member owed its admissions beyond the burst. The debt was forgiven when the
// member left.
func TestLeavingForgivesNothing(t *testing.T) {
	taken, now := 0, time.Duration(0)
	for range 6 {
		var b Bucket
		b.Set(now, 10, now+time.Hour)
		for now += 120 * time.Millisecond; ; {
			ok, _ := b.Take(now, 100)
			if !ok {
				break
			}
			taken += 100
		}
	}
	if most := int(10 * now.Seconds()); taken > most {
		t.Errorf("%d taken in %v at 10 a second", taken, now)
	}
}

// The bucket saves for a large request from tokens that others leave. No other request gets the
// savings.
func TestMoreThanABurstIsSavedFor(t *testing.T) {
	var b Bucket
	now := time.Duration(0)
	b.Set(now, 10, time.Hour)
	now += time.Minute
	ok, wait := b.Take(now, 100)
	if ok || wait < 9900*time.Millisecond || wait > 9901*time.Millisecond {
		t.Fatalf("%v, %v", ok, wait)
	}
	now += wait
	small := 0
	for range 5 {
		if ok, _ := b.Take(now, 1); ok {
			small++
		}
	}
	if small != 1 {
		t.Errorf("%d small ones had what was saved for another", small)
	}
	now += 100 * time.Millisecond
	if ok, wait := b.Take(now, 100); !ok {
		t.Errorf("not there, and again not for %v", wait)
	}
	if ok, _ := b.Take(now, 100); ok {
		t.Error("there twice")
	}
	now += 10 * time.Minute // no new request came
	if ok, _ := b.Take(now, 100); ok {
		t.Error("saved for one that did not come")
	}
	for _, n := range []int{601, 1_000_000, math.MaxInt} {
		if ok, wait := b.Take(now, n); ok || wait != Never {
			t.Errorf("%d of 10 a second: %v, %v", n, ok, wait)
		}
	}
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
	b.Set(time.Second, 0, time.Hour) // the bucket is full, and the rate is given back
	b.Set(2*time.Second, 1000, time.Hour)
	if ok, _ := b.Take(2*time.Second, 1); ok {
		t.Error("a token was kept that was given back")
	}
}
