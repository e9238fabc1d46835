package limiter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// Pauses, ends and other work race.
func TestPausesThatRaceLoseNothing(t *testing.T) {
	const callers, each = 16, 400
	l := configured(t, Config{Law: limit.NewFixed(3), QueueSize: 100, MaxAside: 5, Observer: &Observer{Ended: func(End) {}}})
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 3))
			var last Permit
			for range each {
				p, err := l.AcquireWith(context.Background(), Request{Cost: 1 + r.IntN(3), noWait: r.IntN(2) == 0})
				if err != nil {
					continue
				}
				var racing sync.WaitGroup
				for range r.IntN(3) {
					racing.Go(func() { p.Pause(); runtime.Gosched(); p.Resume() })
				}
				p.Pause()
				last.Pause() // of work that has ended
				for range r.IntN(4) {
					l.pauseIsLong(p)
					runtime.Gosched()
				}
				last.Resume()
				if r.IntN(4) > 0 {
					p.Resume()
				}
				switch r.IntN(8) {
				case 0:
					racing.Go(p.Long)
				case 1:
					racing.Go(func() { p.Shrink(1) })
				case 2:
					racing.Go(p.Release)
				case 3:
					_ = l.Stats()
				}
				p.Done(nil)
				racing.Wait()
				last = p
			}
		})
	}
	all.Wait()
	if err := l.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	atRest(t, l)
	if s := l.Stats(); s.Paused != 0 || s.LongInFlight != 0 || l.gate.Oldest() != nil {
		t.Errorf("%d paused, %d long", s.Paused, s.LongInFlight)
	}
}

// pauseIsLong makes a pause of p as old as the grace, and lets the next caller look for slots.
func (l *Limiter) pauseIsLong(p Permit) {
	l.lock(l.now())
	p.s.mu.Lock()
	if p.s.generation.Load() == p.gen {
		p.s.pausedAt -= pausedGrace
	}
	p.s.mu.Unlock()
	l.nextLook = 0
	l.unlock()
}

// FuzzPauses does what callers do with several permits, in any order, and compares the limiter with
// a list of what each permit holds.
func FuzzPauses(f *testing.F) {
	for seed := range uint64(6) {
		f.Add(seed, uint8(seed))
		f.Add(seed, uint8(128+seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, slots uint8) {
		synctest.Test(t, func(t *testing.T) { pausesOf(t, seed, slots) })
	})
}

// holder is a caller with a permit.
type holder struct {
	p      Permit
	cost   int
	pauses int
	long   bool
	shrunk bool // in this step, unless the work had no slots then
}

func pausesOf(t *testing.T, seed uint64, slots uint8) {
	r := rand.New(rand.NewPCG(seed, 5))
	most := []int{0, -1, 1, 3}[r.IntN(4)]
	cfg := Config{Law: limit.NewFixed(1 + int(slots)%5), QueueSize: 6, MaxAside: most}
	if slots > 127 {
		cfg.Law = nil
	}
	l := configured(t, cfg)
	var mu sync.Mutex
	var holders []*holder
	var ended []Permit
	var asking sync.WaitGroup
	drained := 0
	for step := range 150 {
		// A step begins operations on several permits at once.
		mu.Lock()
		var begin []func()
		busy := map[*holder]bool{}
		for range 1 + r.IntN(3) {
			var h *holder
			if len(holders) > 0 {
				h = holders[r.IntN(len(holders))]
			}
			op := r.IntN(12)
			if op < 3 || h == nil {
				req := Request{Cost: 1 + r.IntN(3), Long: r.IntN(12) == 0, noWait: r.IntN(3) == 0, Priority: spillway.Priority(r.IntN(4) - 1)}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+r.IntN(5000))*time.Millisecond)
				asking.Add(1)
				begin = append(begin, func() {
					defer asking.Done()
					defer cancel()
					if p, err := l.AcquireWith(ctx, req); err == nil {
						mu.Lock()
						holders = append(holders, &holder{p: p, cost: req.Cost, long: req.Long})
						mu.Unlock()
					}
				})
				continue
			}
			if busy[h] {
				continue
			}
			busy[h] = true
			switch op {
			case 3, 4:
				h.pauses++
				begin = append(begin, h.p.Pause)
			case 5, 6:
				h.pauses = max(h.pauses-1, 0)
				begin = append(begin, h.p.Resume)
			case 7:
				h.shrunk = true
				begin = append(begin, func() { h.p.Shrink(1) })
			case 8:
				if r.IntN(3) == 0 {
					h.long = true
					begin = append(begin, h.p.Long)
				}
			case 9, 10, 11:
				holders = slices.DeleteFunc(holders, func(o *holder) bool { return o == h })
				ended = append(ended, h.p)
				err := []error{nil, context.Canceled, errors.New("bad")}[op-9]
				begin = append(begin, func() { h.p.Done(err) })
			}
		}
		for _, do := range begin {
			go do()
		}
		if len(ended) > 0 { // a permit of work that has ended does nothing
			old := ended[r.IntN(len(ended))]
			[]func(){old.Pause, old.Resume, old.Long, old.Release, func() { old.Shrink(1) }}[r.IntN(5)]()
		}
		mu.Unlock()
		synctest.Wait()
		switch r.IntN(40) {
		case 0, 1, 2, 3, 4, 5, 6, 7, 8, 9:
			time.Sleep(time.Duration(r.IntN(40)) * time.Millisecond)
		case 10, 11:
			time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
		case 12:
			_ = l.SetBounds(0, r.IntN(5))
		case 13:
			if step > 100 && drained == 0 {
				drained++
				asking.Go(func() {
					if err := l.Drain(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		}
		synctest.Wait()
		checkPauses(t, l, fmt.Sprintf("step %d", step), holders, most)
	}
	for _, h := range holders {
		h.p.Resume()
		h.p.Done(nil)
	}
	for range 100 { // callers that waited end their work, too
		time.Sleep(50 * time.Millisecond)
		synctest.Wait()
		mu.Lock()
		for _, h := range holders {
			h.p.Done(nil)
		}
		mu.Unlock()
	}
	asking.Wait()
	for _, h := range holders {
		h.p.Done(nil)
	}
	atRest(t, l)
	if s := l.Stats(); s.Paused+s.Parked+s.LongInFlight != 0 || s.OldestInFlight != 0 {
		t.Errorf("at the end %d paused, %d parked, %d long", s.Paused, s.Parked, s.LongInFlight)
	}
	if _, err := l.TryAcquire(t.Context()); err != nil && drained == 0 {
		t.Errorf("nothing runs, and there is no slot: %v", err)
	}
}

// checkPauses compares the limiter with what its callers hold, while nobody is in the middle of an
// operation.
func checkPauses(t *testing.T, l *Limiter, at string, holders []*holder, most int) {
	t.Helper()
	s := l.Stats()
	l.lock(l.now())
	defer l.unlock()
	inFlight, paused, parked, longs := 0, 0, 0, 0
	for i, h := range holders {
		if h.shrunk {
			if was := h.cost; h.long || h.p.s.work.Aside() {
				h.cost = min(max(h.p.s.work.Cost, was-1, 1), was)
			} else {
				h.cost = max(was-1, 1)
			}
			h.shrunk = false
		}
		switch w := &h.p.s.work; {
		case h.long:
			longs++
			if w.Aside() {
				t.Fatalf("%s: long work %d is aside", at, i)
			}
		case w.Paused():
			paused++
			if h.pauses == 0 {
				t.Fatalf("%s: work %d is paused, but its caller goes on", at, i)
			}
		case w.Aside():
			parked++
		default:
			inFlight += h.cost
		}
	}
	if s.InFlight != inFlight || s.Paused != paused || s.Parked != parked || s.LongInFlight != longs || int(s.Admitted-s.Completed) != len(holders) {
		t.Fatalf("%s: %d slots in use, %d paused, %d parked, %d long, %d run, want %d, %d, %d, %d, %d", at,
			s.InFlight, s.Paused, s.Parked, s.LongInFlight, s.Admitted-s.Completed, inFlight, paused, parked, longs, len(holders))
	}
	if s.Offered != s.Admitted+s.Rejected+s.Cancelled+uint64(s.Queued) {
		t.Fatalf("%s: the ledger does not close: %+v", at, s)
	}
	switch {
	case most < 0 && paused+parked > 0, most > 0 && paused+parked > most:
		t.Fatalf("%s: %d paused and %d parked, of at most %d", at, paused, parked, most)
	}
}
