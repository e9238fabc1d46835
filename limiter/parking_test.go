package limiter

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// service is a limiter in front of a backend. The backend has a number of slots, and work that finds
// none waits in the backend, where the limiter does not see it.
type service struct {
	*Limiter
	slots   chan struct{}
	hang    atomic.Pointer[chan struct{}] // while set, work in the backend ends when the channel is closed
	inside  atomic.Int64                  // work in the backend
	most    atomic.Int64                  // most work in the backend
	running atomic.Int64                  // admitted work
	peak    atomic.Int64                  // most admitted work
	all     sync.WaitGroup
}

func serve(t *testing.T, slots int, cfg Config) *service {
	return &service{Limiter: configured(t, cfg), slots: make(chan struct{}, slots)}
}

// enter counts one more, and keeps the highest count.
func enter(n, most *atomic.Int64) {
	for now := n.Add(1); ; {
		if old := most.Load(); old >= now || most.CompareAndSwap(old, now) {
			return
		}
	}
}

// work uses a slot of the backend for the time d.
func (s *service) work(d time.Duration) {
	enter(&s.inside, &s.most)
	defer s.inside.Add(-1)
	s.slots <- struct{}{}
	time.Sleep(d)
	if h := s.hang.Load(); h != nil {
		<-*h
	}
	<-s.slots
}

// traffic is work that arrives at an even pace and uses the backend.
type traffic struct {
	perSecond float64
	takes     time.Duration
	patience  time.Duration           // when callers leave; zero: never
	waits     func(i int) func() bool // what the work waits for before; nil: nothing
}

// count is what came of traffic.
type count struct{ offered, inTime atomic.Int64 }

func (c *count) share() float64 { return float64(c.inTime.Load()) / float64(c.offered.Load()) }

// send lets traffic arrive for the time d, and returns at the end of the arrivals. In time is what is
// answered within the given time; work that waits for something else than the backend is not counted.
func (s *service) send(tr traffic, d, within time.Duration) *count {
	c := &count{}
	for i := range int(tr.perSecond * d.Seconds()) {
		s.all.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			if tr.patience > 0 {
				ctx, cancel = context.WithTimeout(ctx, tr.patience)
			}
			defer cancel()
			began, counts := time.Now(), true
			if tr.waits != nil && tr.waits(i) != nil {
				counts = false
			}
			err := s.Do(ctx, func(ctx context.Context) error {
				enter(&s.running, &s.peak)
				defer s.running.Add(-1)
				if !counts && !tr.waits(i)() {
					return errors.New("nothing came")
				}
				s.work(tr.takes)
				return ctx.Err()
			})
			if counts {
				c.offered.Add(1)
				if err == nil && time.Since(began) <= within {
					c.inTime.Add(1)
				}
			}
		})
		time.Sleep(time.Duration(float64(time.Second) / tr.perSecond))
	}
	return c
}

// asleep is work that waits for d and does not heed its context.
func asleep(d time.Duration) func() bool {
	return func() bool { time.Sleep(d); return true }
}

// Work that uses nothing scarce stops nobody else, whether its callers leave or not, and whether the
// limiter has seen the others before.
func TestWorkThatUsesNothingScarceStopsNobody(t *testing.T) {
	type world struct {
		others  traffic
		waiting func(s *service, locked chan struct{}) // starts the work that waits
	}
	for name, w := range map[string]world{
		"a lock is not given back": {
			traffic{perSecond: 10, takes: 20 * time.Millisecond},
			func(s *service, locked chan struct{}) {
				s.send(traffic{perSecond: 1000, takes: time.Millisecond, waits: func(int) func() bool {
					return func() bool { <-locked; return true }
				}}, 40*time.Millisecond, 0)
			},
		},
		"a dependency hangs": {
			traffic{perSecond: 100, takes: 20 * time.Millisecond, waits: func(i int) func() bool {
				if i%20 < 3 {
					return asleep(8 * time.Second)
				}
				return nil
			}},
			nil,
		},
		"a hundred long polls": {
			traffic{perSecond: 100, takes: 20 * time.Millisecond},
			func(s *service, locked chan struct{}) {
				s.all.Go(func() {
					s.send(traffic{perSecond: 5, takes: time.Millisecond, waits: func(int) func() bool { return asleep(20 * time.Second) }}, 90*time.Second, 0)
				})
			},
		},
	} {
		for _, patience := range []time.Duration{0, time.Second} {
			for _, before := range []time.Duration{0, 30 * time.Second} {
				synctest.Test(t, func(t *testing.T) {
					s, locked := serve(t, 16, Config{}), make(chan struct{})
					w.others.patience = patience
					quick := w.others
					quick.waits = nil
					s.send(quick, before, time.Second)
					if w.waiting != nil {
						w.waiting(s, locked)
					}
					first := s.send(w.others, 10*time.Second, time.Second)
					c := s.send(w.others, time.Minute, time.Second)
					st := s.Stats()
					close(locked)
					s.all.Wait()
					t.Logf("%s, the others stay for %v, after %v: %.3f in the first seconds, then %.3f; %d parked, %d of %d slots in use",
						name, patience, before, first.share(), c.share(), st.Parked, st.InFlight, st.Limit)
					if c.share() < 0.99 {
						t.Errorf("%s, the others stay for %v, after %v: %.3f of the others were answered in time", name, patience, before, c.share())
					}
					atRest(t, s.Limiter)
				})
			}
		}
	}
}

// The backend hangs for a minute. Each trial lets an eighth of the limit in, and trials that fail come
// less and less often: eight of them in a minute.
func TestLittleGoesIntoABackendThatHangs(t *testing.T) {
	for _, patience := range []time.Duration{0, time.Second} {
		for _, before := range []time.Duration{0, 30 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, 16, Config{})
				quick := traffic{perSecond: 100, takes: 20 * time.Millisecond, patience: patience}
				s.send(quick, before, time.Second)
				slots, h := s.Limit(), make(chan struct{})
				s.hang.Store(&h)
				s.most.Store(0)
				s.send(quick, time.Minute, time.Second)
				if most := int(s.most.Load()); most > 2*slots {
					t.Errorf("callers stay for %v, after %v: %d in the backend, with a limit of %d", patience, before, most, slots)
				}
				s.hang.Store(nil)
				close(h)
				s.send(quick, 5*time.Second, time.Second)
				if c := s.send(quick, 10*time.Second, time.Second); c.share() < 0.99 {
					t.Errorf("callers stay for %v, after %v: %.3f are answered in time once the hang is over", patience, before, c.share())
				}
				s.all.Wait()
				atRest(t, s.Limiter)
			})
		}
	}
}

// Reports load the backend, and their callers leave. Trials, which cannot know that, do not cost much:
// less than the chance in any one run, so that runs are added up.
func TestTrialsOfWorkThatLoadsTheBackendCostLittle(t *testing.T) {
	for _, patience := range []time.Duration{5 * time.Second, 10 * time.Second} {
		with, without := int64(0), int64(0)
		for range 4 {
			for aside, sum := range map[int]*int64{0: &with, -1: &without} {
				synctest.Test(t, func(t *testing.T) {
					s := serve(t, 32, Config{MaxAside: aside})
					c := s.send(traffic{perSecond: 24, takes: 2 * time.Second, patience: patience}, 3*time.Minute, patience)
					s.all.Wait()
					*sum += c.inTime.Load()
					atRest(t, s.Limiter)
				})
			}
		}
		t.Logf("callers stay for %v: %d answered in time, %d without trials", patience, with, without)
		if float64(with) < 0.85*float64(without) {
			t.Errorf("callers stay for %v: %d answered in time, %d without trials", patience, with, without)
		}
	}
}

// A fixed law and unbounded waits bound exactly what runs.
func TestWorkIsParkedUnderTheDefaultLawOnly(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   Config
		bound func(l *Limiter)
	}{
		"a fixed law":                      {Config{Law: limit.NewFixed(8)}, nil},
		"a fixed law, unbounded waits":     {Config{Law: limit.NewFixed(8), MaxWait: NoMaxWait}, nil},
		"the default law, unbounded waits": {Config{MaxWait: NoMaxWait}, func(l *Limiter) { _ = l.SetBounds(8, 8) }},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := serve(t, 16, c.cfg)
			if c.bound != nil {
				c.bound(s.Limiter)
			}
			quick := traffic{perSecond: 100, takes: 20 * time.Millisecond, patience: time.Second}
			s.send(quick, 10*time.Second, time.Second)
			quick.waits = func(i int) func() bool {
				if i%20 < 3 {
					return asleep(8 * time.Second)
				}
				return nil
			}
			for range 30 {
				s.send(quick, time.Second, time.Second)
				if st := s.Stats(); st.Parked != 0 || st.InFlight > 8 {
					t.Errorf("%s: %d parked, %d slots in use", name, st.Parked, st.InFlight)
				}
			}
			if s.peak.Load() != 8 {
				t.Errorf("%s: %d ran at once", name, s.peak.Load())
			}
			s.all.Wait()
			atRest(t, s.Limiter)
		})
	}
}

// Parked work is work: Drain waits for it, and a permit that is never ended is reported.
func TestParkedWorkIsDrainedAndReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, locked := serve(t, 16, Config{LeakAfter: 20 * time.Second}), make(chan struct{})
		quick := traffic{perSecond: 10, takes: 20 * time.Millisecond}
		s.send(quick, 10*time.Second, time.Second)
		stuck := traffic{perSecond: 1000, takes: time.Millisecond, waits: func(int) func() bool {
			return func() bool { <-locked; return true }
		}}
		s.send(stuck, 100*time.Millisecond, 0)
		s.send(quick, 30*time.Second, time.Second)
		st := s.Stats()
		hung := int(s.running.Load())
		if st.Parked == 0 || st.Parked+st.InFlight != hung || st.Leaked != uint64(hung) || len(st.Leaks) != hung {
			t.Errorf("%d parked, %d slots in use, %d leaked, of %d that hang", st.Parked, st.InFlight, st.Leaked, hung)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		drained, ok := errors.AsType[*spillway.DrainError](s.Drain(ctx))
		if !ok || drained.Running < hung {
			t.Errorf("%+v, while %d hang", drained, hung)
		}
		close(locked)
		if err := s.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		s.all.Wait()
		if st := s.Stats(); st.Parked != 0 || len(st.Leaks) != 0 || s.running.Load() != 0 {
			t.Errorf("drained beside %d that run: %d parked", s.running.Load(), st.Parked)
		}
		atRest(t, s.Limiter)
	})
}

// Parked work becomes long, shrinks, pauses and ends like other work.
func TestParkedWorkGoesOnLikeOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, 16, Config{})
		quick := traffic{perSecond: 10, takes: 20 * time.Millisecond}
		s.send(quick, 10*time.Second, time.Second)
		var stuck []Permit
		for range s.Limit() {
			stuck = append(stuck, acquire(t, s.Limiter))
		}
		s.send(quick, 30*time.Second, time.Second)
		before := s.Stats()
		if before.Parked < 4 {
			t.Fatalf("%d parked", before.Parked)
		}
		p := stuck[0] // the oldest is parked first
		p.Shrink(1)
		p.Pause()
		time.Sleep(time.Second)
		p.Resume()
		if st := s.Stats(); st.Parked != before.Parked || st.InFlight != before.InFlight || st.Paused != 0 {
			t.Errorf("%d parked, %d slots in use, %d paused", st.Parked, st.InFlight, st.Paused)
		}
		p.Long()
		if st := s.Stats(); st.Parked != before.Parked-1 || st.InFlight != before.InFlight || st.LongInFlight != 1 {
			t.Errorf("%d parked, %d slots in use, %d long", st.Parked, st.InFlight, st.LongInFlight)
		}
		stuck[1].Pause()
		stuck[1].Done(nil)
		if st := s.Stats(); st.Parked != before.Parked-2 || st.InFlight != before.InFlight {
			t.Errorf("%d parked, %d slots in use", st.Parked, st.InFlight)
		}
		for _, p := range stuck {
			p.Done(nil)
			p.Done(nil)
		}
		s.all.Wait()
		atRest(t, s.Limiter)
	})
}
