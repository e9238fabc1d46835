package limiter

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// giveAway pauses p and lets the slots of p go to other work.
func giveAway(t *testing.T, l *Limiter, p Permit) Permit {
	t.Helper()
	p.Pause()
	time.Sleep(2 * pausedGrace)
	q := acquire(t, l)
	if s := l.Stats(); s.Paused == 0 || s.InFlight != s.Limit {
		t.Fatalf("%d paused, %d of %d slots in use", s.Paused, s.InFlight, s.Limit)
	}
	return q
}

func TestSlotsOfPausedWorkGoToAWaiterAfterTheGrace(t *testing.T) {
	for _, waits := range []string{"before the pause", "from the pause on", "later"} {
		synctest.Test(t, func(t *testing.T) {
			l := fixed(t, 1, 10)
			p := acquire(t, l)
			var q Permit
			wait := func() {
				go func() { q = acquire(t, l) }()
				synctest.Wait()
			}
			if waits == "before the pause" {
				wait()
				time.Sleep(7 * time.Millisecond)
			}
			p.Pause()
			if waits == "from the pause on" {
				wait()
			}
			time.Sleep(pausedGrace - 1)
			if waits == "later" {
				wait()
			}
			synctest.Wait()
			holds(t, l, Stats{Queued: 1, InFlight: 1}, waits)
			time.Sleep(recheckLeast + 1)
			synctest.Wait()
			if s := l.Stats(); s.Queued != 0 || s.Paused != 1 || s.InFlight != 1 || s.OldestInFlight > recheckLeast {
				t.Errorf("%s, after the grace: %d wait, %d paused, the slot is in use for %v", waits, s.Queued, s.Paused, s.OldestInFlight)
			}
			p.Done(nil)
			time.Sleep(time.Second)
			q.Done(nil)
			synctest.Wait()
			atRest(t, l)
		})
	}
}

// Regression: before the first pause of a limiter, a refusal was kept for as long as nothing changed,
// and nobody looked for slots of paused work.
func TestSlotsOfPausedWorkGoToAnArrivalAfterTheGrace(t *testing.T) {
	for _, cfg := range []Config{{Law: limit.NewFixed(1)}, {}} {
		synctest.Test(t, func(t *testing.T) {
			l := configured(t, cfg)
			_ = l.SetBounds(1, 1)
			p := acquire(t, l)
			try := func() bool {
				t.Helper()
				q, err := l.TryAcquire(t.Context())
				q.Done(err)
				return err == nil
			}
			if try() {
				t.Fatal("there is no slot")
			}
			p.Pause()
			for range pausedGrace / time.Millisecond {
				if try() {
					t.Fatal("the grace is not over")
				}
				time.Sleep(time.Millisecond)
			}
			time.Sleep(lookEvery)
			for range 2 {
				if !try() {
					t.Error("the grace is over, and there is no slot")
				}
			}
			p.Resume()
			if try() {
				t.Error("the slot is in use again")
			}
			finish(t, l, p)
		})
	}
}

// A body that arrives in many small parts, each in time, costs nobody a slot.
func TestShortPausesChangeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law := &told{Law: limit.NewFixed(1)}
		l := configured(t, Config{Law: law})
		p := acquire(t, l)
		var q Permit
		go func() { q = acquire(t, l) }()
		for range 100 {
			p.Pause()
			time.Sleep(pausedGrace - 1)
			p.Resume()
			holds(t, l, Stats{Queued: 1, InFlight: 1})
		}
		time.Sleep(time.Second)
		p.Done(nil)
		synctest.Wait()
		q.Done(nil)
		if s := law.samples[0]; law.admitted != 2 || s.Seq != 1 || s.Outcome != limit.Success || s.End-s.Start != time.Second {
			t.Errorf("%d starts, the first end is %+v", law.admitted, s)
		}
		atRest(t, l)
	})
}

func TestPausesNest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law := &told{Law: limit.NewFixed(1)}
		l := configured(t, Config{Law: law})
		p := acquire(t, l)
		const readers = 8
		var all sync.WaitGroup
		for i := range readers { // each pause begins and ends later than the one before
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				p.Pause()
				p.Pause()
				time.Sleep(1500 * time.Millisecond)
				p.Resume()
				p.Resume()
			})
		}
		time.Sleep(time.Second / 2)
		q := acquire(t, l)
		for range readers {
			holds(t, l, Stats{InFlight: 1, Paused: 1})
			time.Sleep(time.Second)
		}
		all.Wait()
		holds(t, l, Stats{InFlight: 2})
		p.Resume() // without a pause
		time.Sleep(time.Second)
		p.Done(nil)
		if s := law.samples[1]; s.Outcome != limit.Success || s.End-s.Start != time.Second {
			t.Errorf("sample %+v", s)
		}
		finish(t, l, q)
	})
}

func TestTimeInAPauseIsNoPartOfTheSample(t *testing.T) {
	for _, c := range []struct {
		name  string
		given bool // others get the slots
		open  bool // the work ends in a pause
		err   error
		want  limit.Outcome
	}{
		{"success", false, false, nil, limit.Success},
		{"success, slots given", true, false, nil, limit.Success},
		{"success in a pause", false, true, nil, limit.Success},
		{"deadline", false, false, context.DeadlineExceeded, limit.Unknown},
		{"deadline, slots given", true, false, context.DeadlineExceeded, limit.Unknown},
		{"deadline in a pause", false, true, context.DeadlineExceeded, limit.Unknown},
		{"cancelled", false, false, context.Canceled, limit.Unknown},
		{"cancelled, slots given", true, false, context.Canceled, limit.Unknown},
		{"cancelled in a pause", false, true, context.Canceled, limit.Unknown},
		{"failed", true, false, errors.New("disk full"), limit.Failed},
		{"overload", true, false, spillway.ErrRejected, limit.Overload},
	} {
		synctest.Test(t, func(t *testing.T) {
			law := &told{Law: limit.NewFixed(1)}
			l := configured(t, Config{Law: law, MaxWait: time.Hour})
			for range 30 {
				from := len(law.samples)
				p := acquire(t, l)
				time.Sleep(time.Second)
				if c.given {
					q := giveAway(t, l, p)
					q.Done(nil)
					time.Sleep(time.Second - 2*pausedGrace)
				} else {
					p.Pause()
					time.Sleep(time.Second)
				}
				p.Resume()
				time.Sleep(time.Second)
				p.Pause()
				time.Sleep(3 * time.Second)
				if !c.open {
					p.Resume()
				}
				p.Done(c.err)
				last := law.samples[len(law.samples)-1]
				if last.Outcome != c.want || last.End-last.Start != 2*time.Second {
					t.Fatalf("%s: outcome %d after %v, want %d after 2s", c.name, last.Outcome, last.End-last.Start, c.want)
				}
				for _, s := range law.samples[from : len(law.samples)-1] {
					if s.Outcome != limit.Unknown && s.End != s.Start {
						t.Fatalf("%s: another sample %+v", c.name, s)
					}
				}
			}
			if s := l.Stats(); s.Lost != 0 && c.want != limit.Overload {
				t.Errorf("%s: %v lost", c.name, s.Lost)
			}
			if s := l.Stats(); time.Duration(s.Service.Max()) > 2050*time.Millisecond {
				t.Errorf("%s: the longest work took %v", c.name, time.Duration(s.Service.Max()))
			}
			atRest(t, l)
		})
	}
}

// A Resume that was interrupted once added its pause to the next work in the slot.
func TestAPauseThatEndsLateIsNoTimeOfTheNextWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 0)
		p := acquire(t, l)
		p.Pause()
		time.Sleep(time.Hour)
		p.Done(nil)
		q := acquire(t, l)
		if p.s != q.s || q.s.away != 0 {
			t.Fatalf("the slot was not reused, or the next work begins with %v", q.s.away)
		}
		p.Resume()
		p.Pause()
		q.Pause()
		time.Sleep(time.Second)
		p.Resume()
		q.Resume()
		q.Resume()
		time.Sleep(time.Second)
		p.Resume()
		if q.s.away != time.Second || q.s.pauses != 0 {
			t.Errorf("%v in pauses, %d go on", q.s.away, q.s.pauses)
		}
		finish(t, l, q)
	})
}

// Most of the time was the work's own: the loss is a loss.
func TestALossAfterAShortPauseIsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law := &told{Law: limit.NewFixed(1)}
		l := configured(t, Config{Law: law})
		for range 30 {
			p := acquire(t, l)
			p.Pause()
			time.Sleep(400 * time.Millisecond)
			p.Resume()
			time.Sleep(600 * time.Millisecond)
			p.Done(context.DeadlineExceeded)
		}
		if s := law.samples[29]; s.Outcome != limit.Deadline || s.End-s.Start != 600*time.Millisecond || l.Stats().Lost < 0.9 {
			t.Errorf("%+v, %v lost", s, l.Stats().Lost)
		}
		atRest(t, l)
	})
}

// Regression: work that ended while paused, with its slots, is evidence about other work; without its
// slots it is none.
func TestWorkThatEndsWithoutItsSlotsIsNoEvidence(t *testing.T) {
	for name, end := range map[string]func(Permit){
		"Done":     func(p Permit) { p.Done(nil) },
		"deadline": func(p Permit) { p.Done(context.DeadlineExceeded) },
		"Release":  Permit.Release,
	} {
		synctest.Test(t, func(t *testing.T) {
			law := &told{Law: limit.NewFixed(1)}
			ends := 0
			l := configured(t, Config{Law: law, Observer: &Observer{Ended: func(e End) { ends++ }}})
			p := acquire(t, l)
			q := giveAway(t, l, p)
			time.Sleep(time.Hour)
			end(p)
			end(p)
			p.Resume()
			if s := l.Stats(); s.Paused != 0 || s.InFlight != 1 || s.Completed != 1 || s.Service.Count() != 0 || ends != 1 {
				t.Errorf("%s: %d paused, %d slots in use, %d completed, %d measured, told of %d ends",
					name, s.Paused, s.InFlight, s.Completed, s.Service.Count(), ends)
			}
			if len(law.samples) != 1 || law.samples[0].Outcome != limit.Unknown {
				t.Errorf("%s: %+v", name, law.samples)
			}
			finish(t, l, q)
		})
	}
}

// FuzzPauses has every order of what may happen. Here is how many slots come back at each step.
func TestLongAndShrinkOfPausedWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 4, 10)
		p := take(t, l, Request{Cost: 4})
		p.Pause()
		p.Shrink(2)
		holds(t, l, Stats{InFlight: 2})
		time.Sleep(time.Second)
		q := take(t, l, Request{Cost: 4})
		p.Shrink(1) // holds no slots
		holds(t, l, Stats{InFlight: 4, Paused: 1})
		p.Resume()
		holds(t, l, Stats{InFlight: 6})
		p.Shrink(1)
		p.Pause()
		holds(t, l, Stats{InFlight: 5})
		time.Sleep(time.Second)
		if _, err := l.TryAcquire(t.Context()); err == nil {
			t.Error("the limit is still reached")
		}
		holds(t, l, Stats{InFlight: 4, Paused: 1})
		p.Long()
		p.Long()
		p.Resume()
		p.Pause()
		p.Shrink(1) // long work has no slots to take
		holds(t, l, Stats{InFlight: 4, LongInFlight: 1})
		q.Pause()
		q.Long() // with its slots
		holds(t, l, Stats{LongInFlight: 2})
		finish(t, l, p, q)
	})
}

func TestMaxAsideBoundsHowMuchIsPaused(t *testing.T) {
	for configuredAs, want := range map[int]int{-1: 0, 1: 1, 3: 3, 0: 8} {
		synctest.Test(t, func(t *testing.T) {
			l := configured(t, Config{Law: limit.NewFixed(8), MaxAside: configuredAs})
			var all []Permit
			for range 8 {
				p := acquire(t, l)
				p.Pause()
				all = append(all, p)
			}
			time.Sleep(time.Second)
			others := 0
			for range 20 {
				p, err := l.TryAcquire(t.Context())
				time.Sleep(lookEvery)
				if err == nil {
					others++
					all = append(all, p)
				}
			}
			if s := l.Stats(); s.Paused != want || others != want || s.InFlight != 8 {
				t.Errorf("MaxAside %d: %d paused for %d others, %d slots in use", configuredAs, s.Paused, others, s.InFlight)
			}
			for _, p := range all[:8] {
				p.Resume()
			}
			holds(t, l, Stats{InFlight: 8 + want}, "MaxAside", configuredAs)
			finish(t, l, all...)
		})
	}
}

func TestPausesSurviveAChangeOfTheMode(t *testing.T) {
	for _, m := range []Mode{DryRun, Off} {
		for _, cfg := range []Config{{Law: limit.NewFixed(1)}, {}} {
			synctest.Test(t, func(t *testing.T) {
				l := configured(t, cfg)
				_ = l.SetBounds(1, 1)
				p := acquire(t, l)
				q := giveAway(t, l, p)
				l.SetMode(m)
				other := acquire(t, l)
				other.Pause()
				time.Sleep(time.Second)
				acquire(t, l).Done(nil) // outside enforcement slots are never short
				p.Resume()
				if s := l.Stats(); s.Paused != 0 || s.InFlight < 2 {
					t.Errorf("%v: %d paused, %d slots in use", m, s.Paused, s.InFlight)
				}
				p.Pause()
				l.SetMode(Enforce)
				time.Sleep(time.Second)
				other.Done(nil)
				q.Done(nil)
				third := acquire(t, l)
				holds(t, l, Stats{Paused: 1, InFlight: 1}, m)
				p.Resume()
				finish(t, l, p, third)
			})
		}
	}
}

func TestPauseOfAPermitOfALimiterThatIsOffDoesNothing(t *testing.T) {
	l := configured(t, Config{Mode: Off})
	p := acquire(t, l)
	p.Pause()
	p.Resume()
	p.Done(nil)
	if s := l.Stats(); s.Offered != 0 || s.Paused != 0 {
		t.Errorf("%+v", s)
	}
	atRest(t, l)
}

func TestAllocsOfPauseAndResume(t *testing.T) {
	l := fixed(t, 1, 1)
	p := acquire(t, l)
	if n := testing.AllocsPerRun(1000, func() { p.Pause(); p.Pause(); p.Resume(); p.Resume() }); n != 0 {
		t.Errorf("a pause that nobody uses: %v allocations", n)
	}
	p.Done(nil)
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 1)
		if n := testing.AllocsPerRun(100, func() {
			p := acquire(t, l)
			p.Pause()
			time.Sleep(2 * pausedGrace)
			q, _ := l.TryAcquire(context.Background())
			if !p.s.work.Paused() {
				t.Fatal("not paused")
			}
			p.Resume()
			p.Done(nil)
			q.Done(nil)
		}); n != 0 {
			t.Errorf("a pause whose slots go to others: %v allocations", n)
		}
		atRest(t, l)
	})
}
