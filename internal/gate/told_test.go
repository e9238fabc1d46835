package gate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// taught is a gate that has served work of the given kinds for a while.
func taught(slots int, kinds ...string) (g *Gate, now time.Duration) {
	g = New(Config{Law: limit.NewFixed(slots), QueueSize: 1000, MaxWait: time.Hour})
	for i := range 100 * len(kinds) {
		g.Arrive(now, arrivalOf(g, now, kinds[i%len(kinds)]), nil)
		now += tookBy(kinds[i%len(kinds)])
		g.End(now, g.Started(), limit.Success)
		now += 10 * time.Millisecond
	}
	return g, now
}

func tookBy(kind string) time.Duration {
	if kind == "report" {
		return 2 * time.Second
	}
	return 5 * time.Millisecond
}

func arrivalOf(g *Gate, now time.Duration, kind string) Arrival {
	return Arrival{Cost: 1, Kind: g.KindOf(kind), Deadline: now + 10*time.Second}
}

// Lookups of 5 ms and reports of 2 s have the same deadline. As one kind with a mean of
// a second, twenty lookups once filled the queue.
func TestASlowToldKindDoesNotMakeAnotherBeRefused(t *testing.T) {
	const slots, lookups = 4, 200
	g, now := taught(slots, "lookup", "report")
	for range slots {
		g.Arrive(now, arrivalOf(g, now, "report"), nil)
	}
	for i := range lookups {
		if d := g.Arrive(now, arrivalOf(g, now, "lookup"), &Waiter{}); d.Action != Wait {
			t.Fatalf("with %d lookups in the queue, which take %v, one that has 10 s is answered %+v", i, time.Duration(i)*tookBy("lookup")/slots, d)
		}
	}
}

// In overload, a start needs the time within which nearly all work of its kind ends.
func TestAToldKindNeedsTheTimeThatItTakes(t *testing.T) {
	g, now := taught(1, "lookup", "report")
	g.overdemand = 1
	for kind, most := range map[string]time.Duration{"lookup": 20 * time.Millisecond, "report": 5 * time.Second} {
		a := arrivalOf(g, now, kind)
		if need := time.Duration(g.need(now, g.kind(Key(now, &a), 1), a.Deadline)); need < tookBy(kind)/2 || need > most {
			t.Errorf("a %s is thought to need %v, and takes %v", kind, need, tookBy(kind))
		}
	}
}

// Work of one route may have any mix of deadlines.
func TestAToldKindHasTheTimeThatAllButFewOfItHave(t *testing.T) {
	g := New(Config{Law: limit.NewFixed(1), QueueSize: 10, MaxWait: time.Hour})
	now, i := time.Duration(0), 0
	after := func(deadlines ...time.Duration) time.Duration {
		for range 1000 {
			now += 10 * time.Millisecond
			a := Arrival{Cost: 1, Kind: g.KindOf("a"), Deadline: Never}
			if d := deadlines[i%len(deadlines)]; d != Never {
				a.Deadline = now + d
			}
			i++
			if g.Arrive(now, a, nil); g.Running() > 0 {
				g.End(now, g.Started(), limit.Success)
			}
		}
		return time.Duration(g.service.kinds.list[0].has)
	}
	const s, long = 250 * time.Millisecond, 8 * time.Second
	for _, c := range []struct {
		of   []time.Duration
		want time.Duration
	}{
		{[]time.Duration{long}, long},
		{[]time.Duration{Never}, 0},
		{[]time.Duration{s, long, long, long, long, long, long, long}, s},
		{[]time.Duration{long, Never}, long},
		{append(slices.Repeat([]time.Duration{long}, 39), s), long}, // one in forty is few
		{[]time.Duration{s}, s},
	} {
		if got := after(c.of...); got != c.want {
			t.Errorf("of deadlines %v: the kind has %v, want %v", c.of, got, c.want)
		}
	}
}

// forgetful is a law that checks the promises of the gate to a limit.Forgetter.
type forgetful struct {
	limit.Law
	t         *testing.T
	running   [limit.Classes]int
	forgotten int
}

func (f *forgetful) Admit(_ time.Duration, l limit.Load) { f.running[l.Class]++ }

func (f *forgetful) Observe(s limit.Sample, _ limit.Load) { f.running[s.Class]-- }

func (f *forgetful) Forget(class uint8) {
	f.forgotten++
	if n := f.running[class]; n != 0 {
		f.t.Fatalf("class %d is that of other work now, and %d of it run", class, n)
	}
}

// Kinds come and go, and in a dry run as well.
func TestAKindOfWhichSomeRunsOrWaitsIsNotForgotten(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 11))
		law := &forgetful{Law: limit.NewFixed(8), t: t}
		g := New(Config{Law: law, QueueSize: 20, MaxWait: time.Minute})
		now, dry := time.Duration(0), false
		var running []Grant
		var waiting []*Waiter
		for step := range 20_000 {
			now += time.Duration(r.ExpFloat64() * 1e7)
			if step%1000 == 0 && len(waiting) == 0 {
				dry = seed%2 == 0 && r.IntN(2) == 0
			}
			// Some names are frequent, and the frequent names change from time to time.
			name := fmt.Sprint(step/2000+r.IntN(25), r.IntN(1+25*r.IntN(2)))
			a := Arrival{Cost: 1, Priority: spillway.Priority(r.IntN(2)), Kind: g.KindOf(name), Deadline: now + time.Duration(r.Int64N(5e9))}
			if r.IntN(50) == 0 {
				a.Traits = Long
			}
			var d Decision
			w := &Waiter{}
			if dry {
				d = g.Force(now, a, true, 0)
			} else {
				d = g.Arrive(now, a, w)
			}
			switch d.Action {
			case Admit:
				running = append(running, g.Started())
			case Wait:
				waiting = append(waiting, w)
			}
			for len(running) > 0 && r.IntN(5) < 3 {
				i := r.IntN(len(running))
				w := running[i]
				running[i] = running[len(running)-1]
				running = running[:len(running)-1]
				if !w.Long && r.IntN(20) == 0 {
					g.LengthenWork(now, tracked(g, w))
					w.Long = true
				}
				g.End(now, w, limit.Outcome(r.IntN(6)))
				for next, granted := g.Next(now); next != nil; next, granted = g.Next(now) {
					if w := g.Started(); granted && r.IntN(10) == 0 {
						g.RevokeWork(now, tracked(g, w))
					} else if granted {
						g.Taken(next, 0)
						running = append(running, w)
					}
				}
			}
			if len(waiting) > 0 && r.IntN(4) == 0 {
				i := r.IntN(len(waiting))
				g.Leave(now, waiting[i])
				waiting = append(waiting[:i], waiting[i+1:]...)
			}
			held := 0
			for i := range g.service.kinds.list {
				held += int(g.service.kinds.list[i].present)
			}
			if want := g.queued + g.running - g.long; held != want {
				t.Fatalf("seed %d, step %d: %d are held, and %d wait or run", seed, step, held, want)
			}
		}
		if law.forgotten < 10 {
			t.Errorf("seed %d: only %d kinds were forgotten", seed, law.forgotten)
		}
	}
}

func TestNothingIsKnownOfAKindInThePlaceOfAnother(t *testing.T) {
	law := &forgetful{Law: limit.NewFixed(1), t: t}
	g := New(Config{Law: law, QueueSize: 10, MaxWait: time.Hour})
	now := time.Duration(0)
	work := func(name string) uint8 {
		now += 10 * time.Millisecond
		g.Arrive(now, arrivalOf(g, now, name), nil)
		w := g.Started()
		now += 10 * time.Millisecond
		g.End(now, w, limit.Success)
		return w.Kind
	}
	places := map[uint8]bool{}
	for i := range 100 {
		places[work(fmt.Sprint(i%(limit.Classes-levels)))] = true
	}
	if len(places) != limit.Classes-levels {
		t.Fatalf("%d kinds have places", len(places))
	}
	untold := work("late")
	if g.service.kinds.list[untold].named {
		t.Fatal("a kind for which there is no place is not taken for one that was not told")
	}
	for i := range 1000 {
		at := work("late")
		if at == untold {
			continue
		}
		if k := &g.service.kinds.list[at]; k.n != 1 || law.forgotten != 1 || !k.named {
			t.Errorf("after the first of its work: %+v; the law has forgotten %d classes", k, law.forgotten)
		}
		if i < 9 {
			t.Errorf("it has a place after %d times", i)
		}
		return
	}
	t.Error("it has no place")
}
