package limiter

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/processors"
)

// computing is a process of one processor that takes requests in the order of their arrival: an admitted one
// computes for costs, a refused one takes refusing.
type computing struct {
	waited, squares float64 // of waits since the last reading
	runnable        int
}

const (
	costs    = 5 * time.Millisecond
	refusing = 40 * time.Microsecond
)

func (c *computing) read() (processors.Reading, bool) {
	r := processors.Reading{Processors: 1, Runnable: c.runnable, Waited: c.waited, Squares: c.squares}
	c.waited, c.squares = 0, 0
	return r, true
}

// serve has requests arrive at l for 20 s, at so many times the capacity. serve returns how many are answered within
// a second, of those that arrive after 4 s, how many are refused, and the longest difference between the wait of a
// request and Statl.door.stats().
func (c *computing) serve(t *testing.T, l *Limiter, load float64) (good, refused int, wrong time.Duration) {
	t.Helper()
	every := time.Duration(float64(costs) / load)
	began := time.Now()
	for taken := 0; time.Since(began) < 20*time.Second; taken++ {
		arrived := time.Duration(taken) * every
		time.Sleep(arrived - time.Since(began))
		now := time.Since(began)
		wait := (now - arrived).Seconds()
		c.waited, c.squares, c.runnable = c.waited+wait, c.squares+wait*wait, int(now/every)-taken+1
		p, err := l.Acquire(t.Context())
		if err != nil {
			refused++
			time.Sleep(refusing)
			continue
		}
		if now > 8*time.Second {
			wrong = max(wrong, (l.door.stats().Wait - (now - arrived)).Abs())
		}
		time.Sleep(costs)
		p.Done(nil)
		if now > 4*time.Second && time.Since(began)-arrived <= time.Second {
			good++
		}
	}
	return good, refused, wrong
}

// What is admitted and sleeps says nothing about the processors. Regression: beside 1,500 pieces of work that slept
// with their slots, nothing was shed at twice the capacity, each request waited for over a second, and Stats said 0.
func TestSleepingWorkDoesNotHideThatProcessorsAreShort(t *testing.T) {
	const many = 1500
	acquire := func(t *testing.T, l *Limiter, n int, r Request) (held []Permit) {
		for range n {
			p, err := l.AcquireWith(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, p)
		}
		return held
	}
	wide := func(t *testing.T, l *Limiter) {
		if err := l.SetBounds(many+32, 0); err != nil {
			t.Fatal(err)
		}
	}
	shapes := []struct {
		name string
		hold func(t *testing.T, l *Limiter) []Permit
	}{
		{"nothing", func(*testing.T, *Limiter) []Permit { return nil }},
		{"streams", func(t *testing.T, l *Limiter) []Permit { return acquire(t, l, many, Request{Long: true}) }},
		{"sleepers", func(t *testing.T, l *Limiter) []Permit {
			wide(t, l)
			return acquire(t, l, many, Request{})
		}},
		{"sleepers behind the front", func(t *testing.T, l *Limiter) []Permit {
			inner := configured(t, Config{})
			inner.door.monitor = l.door.monitor
			wide(t, inner)
			return acquire(t, inner, many, Request{})
		}},
	}
	for _, load := range []float64{.8, 2} {
		alone := 0
		for _, s := range shapes {
			synctest.Test(t, func(t *testing.T) {
				c := &computing{}
				l := configured(t, Config{})
				l.door.monitor = processors.New(time.Now(), c.read)
				l.due.Store(0)
				l.front(l.door.monitor)
				held := s.hold(t, l)
				time.Sleep(5 * time.Second) // these arrivals are not recent
				good, refused, wrong := c.serve(t, l, load)
				if s.name == "nothing" {
					alone = good
				}
				t.Logf("load %.1f beside %s: %d are answered in time, %d refused; the wait is wrong by %v at most", load, s.name, good, refused, wrong)
				if float64(good) < .95*float64(alone) || good < 2000 {
					t.Errorf("load %.1f beside %s: %d are answered in time, and %d without", load, s.name, good, alone)
				}
				if load < 1 && refused > 0 || load > 1 && wrong > 150*time.Millisecond {
					t.Errorf("load %.1f beside %s: %d are refused, the wait is wrong by %v", load, s.name, refused, wrong)
				}
				if st := l.Stats(); load > 1 && (st.RejectedBy[spillway.ReasonScheduler] != uint64(refused) || !strings.Contains(st.State, "processors are short")) {
					t.Errorf("load %.1f beside %s: %+v", load, s.name, st)
				}
				for _, p := range held {
					p.Release()
				}
			})
		}
	}
}
