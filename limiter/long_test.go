package limiter

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

func long(t *testing.T, l *Limiter) Permit {
	t.Helper()
	p := take(t, l, Request{Long: true})
	return p
}

// Regression: each stream of an hour held a slot, until no slot was left.
func TestLongWorkHoldsNoSlotAndTeachesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		law := &told{Law: limit.NewFixed(2)}
		l := configured(t, Config{Law: law, LeakAfter: time.Minute})
		var streams []Permit
		for range 10 {
			streams = append(streams, long(t, l))
		}
		learn(t, l, 10*time.Millisecond)
		time.Sleep(time.Hour)
		a, b := acquire(t, l), acquire(t, l)
		if s := l.Stats(); s.InFlight != 2 || s.LongInFlight != 10 || s.Admitted-s.Completed != 12 || s.OldestInFlight != 0 {
			t.Fatalf("%+v", s)
		}
		if s := l.Stats(); s.Leaked != 0 || s.Law != "limiter.told" || s.State != "limiter.told reports no state" {
			t.Fatalf("%d leaks, %s", s.Leaked, s.State)
		}
		for _, p := range streams {
			p.Done(nil)
		}
		// The hour of the streams is in no prediction: work of 10 ms is not late.
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		time.AfterFunc(5*time.Millisecond, func() { a.Done(nil); b.Done(nil) })
		c, err := l.Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		c.Done(nil)
		synctest.Wait()
		if s := l.Stats(); s.LongInFlight != 0 || s.Service.Count() != 33 || time.Duration(s.Service.Max()) > 11*time.Millisecond {
			t.Errorf("%d long, %d measured, the longest %v", s.LongInFlight, s.Service.Count(), time.Duration(s.Service.Max()))
		}
		numbers := map[uint64]bool{}
		for _, s := range law.samples {
			numbers[s.Seq] = true
		}
		if law.admitted != 33 || len(law.samples) != 33 || len(numbers) != 33 || !numbers[1] || !numbers[33] {
			t.Errorf("the law was told of %d starts and %d ends of 33, numbered %v", law.admitted, len(law.samples), numbers)
		}
		for _, load := range law.loads {
			if load.InFlight > 2 {
				t.Errorf("the law was told of long work: %+v", load)
			}
		}
		atRest(t, l)
	})
}

// Work that a drain left behind, or that never ended, was counted only: nothing said which work it was.
func TestWhatDoesNotEndIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keyedBy(t, KeyedConfig{New: func(string) Config { return Config{Law: limit.NewFixed(2), LeakAfter: time.Minute} }})
		begin := func(key, kind string) Permit {
			p, err := k.AcquireWith(t.Context(), key, Request{Kind: kind})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			return p
		}
		first := begin("b", "report")
		first.Pause() // and others get its slot
		running := []Permit{first, begin("b", "lookup"), begin("b", "lookup"), begin("a", "")}
		l, err := k.Get("b")
		if err != nil {
			t.Fatal(err)
		}
		if s := l.Stats(); s.Paused != 1 || len(s.Leaks) != 3 || s.Leaks[0].Kind != "report" || s.Leaks[1].Kind != "lookup" {
			t.Errorf("%d paused, %+v", s.Paused, s.Leaks)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		d, _ := errors.AsType[*spillway.DrainError](k.Drain(ctx))
		if d == nil || d.Running != 4 || d.Oldest != 5*time.Minute || d.Kind != "report" ||
			d.Error() != "spillway: drain ended early (context deadline exceeded): 0 dropped, 4 still running, the oldest for 5m0s, of kind report" {
			t.Errorf("%v", d)
		}
		for _, p := range running {
			p.Done(nil)
		}
		if err := k.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A permit is copied, and its copies are used at once and in any order. The slot of
// work that has ended belongs to other work.
func FuzzPermit(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3})
	f.Add([]byte{0, 0, 1, 5, 9, 2, 6, 10, 0, 1, 1, 1})
	f.Add([]byte{0, 4, 8, 12, 1, 5, 9, 13, 3, 7, 11, 15})
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) > 200 {
			return
		}
		l := configured(t, Config{Law: limit.NewFixed(4), QueueSize: -1, Observer: &Observer{Ended: func(End) {}}})
		var permits []Permit
		running, long := map[Permit]bool{}, map[Permit]bool{}
		for _, op := range ops {
			if op%4 == 0 {
				p, err := l.AcquireWith(context.Background(), Request{noWait: true, Long: op%8 == 0})
				if (err == nil) != (len(running)-len(long) < 4) {
					t.Fatalf("%d run, %d of them long: %v", len(running), len(long), err)
				}
				if err == nil {
					permits = append(permits, p)
					running[p] = true
					if op%8 == 0 {
						long[p] = true
					}
				}
			} else if len(permits) > 0 {
				p := permits[int(op/4)%len(permits)]
				switch op % 4 {
				case 1:
					p.Long()
					if running[p] {
						long[p] = true
					}
				case 2:
					p.Done(nil)
				case 3:
					p.Release()
				}
				if op%4 > 1 {
					delete(running, p)
					delete(long, p)
				}
			}
			if s := l.Stats(); s.LongInFlight != len(long) || s.InFlight != len(running)-len(long) || int(s.Admitted-s.Completed) != len(running) {
				t.Fatalf("%d run, %d of them long: %+v", len(running), len(long), s)
			}
		}
		for p := range running {
			p.Done(nil)
		}
		atRest(t, l)
	})
}
