package limiter

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/limit"
)

// service is a limiter in front of a backend. The backend has a number of slots, and work that finds
// none waits in the backend, where the limiter does not see it.
type service struct {
	*Limiter
	slots   chan struct{}
	locked  chan struct{}                 // closed when the lock is given back
	hang    atomic.Pointer[chan struct{}] // while set, work in the backend ends when the channel is closed
	inside  atomic.Int64                  // work in the backend
	most    atomic.Int64                  // most work in the backend
	running atomic.Int64                  // admitted work
	peak    atomic.Int64                  // most admitted work
	all     sync.WaitGroup
}

func serve(t *testing.T, slots int, cfg Config) *service {
	return &service{Limiter: configured(t, cfg), slots: make(chan struct{}, slots), locked: make(chan struct{})}
}

// enter counts one more, and keeps the highest count.
func enter(n, most *atomic.Int64) {
	for now := n.Add(1); ; {
		if old := most.Load(); old >= now || most.CompareAndSwap(old, now) {
			return
		}
	}
}

// traffic is work that arrives at an even pace and uses the backend.
type traffic struct {
	perSecond float64
	takes     time.Duration
	patience  time.Duration             // when callers leave; zero: never
	waits     func(i int) time.Duration // how long the work waits for something else before; nil: not at all
}

// untilUnlocked is a wait that the world ends.
const untilUnlocked time.Duration = -1

func always(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// threeInTwenty is a dependency that hangs.
func threeInTwenty(i int) time.Duration {
	if i%20 < 3 {
		return 8 * time.Second
	}
	return 0
}

// count is what came of traffic.
type count struct{ offered, inTime atomic.Int64 }

func (c *count) share() float64 { return float64(c.inTime.Load()) / float64(c.offered.Load()) }

// send lets traffic arrive for the time d, and returns at the end of the arrivals. In time is what is
// answered within the given time. Work that waits for something else than the backend is not counted,
// and does not heed that its caller leaves.
func send(s *service, tr traffic, d, within time.Duration) *count {
	c := &count{}
	for i := range int(tr.perSecond * d.Seconds()) {
		sendOne(context.Background(), s, tr, i, within, c)
		time.Sleep(time.Duration(float64(time.Second) / tr.perSecond))
	}
	return c
}

// sendOne sends piece i of the traffic, and counts what comes of it.
func sendOne(ctx context.Context, s *service, tr traffic, i int, within time.Duration, c *count) {
	wait := time.Duration(0)
	if tr.waits != nil {
		wait = tr.waits(i)
	}
	s.all.Go(func() {
		cancel := func() {}
		if tr.patience > 0 {
			ctx, cancel = context.WithTimeout(ctx, tr.patience)
		}
		defer cancel()
		late := time.Now().Add(within)
		err := s.Do(ctx, func(ctx context.Context) error {
			enter(&s.running, &s.peak)
			defer s.running.Add(-1)
			if wait == untilUnlocked {
				<-s.locked
			}
			time.Sleep(wait)
			enter(&s.inside, &s.most)
			defer s.inside.Add(-1)
			s.slots <- struct{}{}
			time.Sleep(tr.takes)
			if h := s.hang.Load(); h != nil {
				<-*h
			}
			<-s.slots
			return ctx.Err()
		})
		if wait == 0 {
			c.offered.Add(1)
			if err == nil && !time.Now().After(late) {
				c.inTime.Add(1)
			}
		}
	})
}

// Work that uses nothing scarce stops nobody else, whether its callers leave or not, and whether the
// limiter has seen the others before.
func TestWorkThatUsesNothingScarceStopsNobody(t *testing.T) {
	soak.WithoutRace(t)
	for name, w := range map[string]struct {
		others, waiting traffic
		arrives         time.Duration // how long waiting work arrives
	}{
		"a lock is not given back": {
			others:  traffic{perSecond: 10, takes: 20 * time.Millisecond},
			waiting: traffic{perSecond: 1000, takes: time.Millisecond, waits: always(untilUnlocked)},
			arrives: 40 * time.Millisecond,
		},
		"a dependency hangs": {
			others: traffic{perSecond: 100, takes: 20 * time.Millisecond, waits: threeInTwenty},
		},
		"a hundred long polls": {
			others:  traffic{perSecond: 100, takes: 20 * time.Millisecond},
			waiting: traffic{perSecond: 5, takes: time.Millisecond, waits: always(20 * time.Second)},
			arrives: 90 * time.Second,
		},
	} {
		for _, patience := range []time.Duration{0, time.Second} {
			for _, before := range []time.Duration{0, 30 * time.Second} {
				synctest.Test(t, func(t *testing.T) {
					s := serve(t, 16, Config{})
					others, quick := w.others, w.others
					others.patience, quick.patience, quick.waits = patience, patience, nil
					send(s, quick, before, time.Second)
					s.all.Go(func() { send(s, w.waiting, w.arrives, 0) })
					first := send(s, others, 10*time.Second, time.Second)
					c := send(s, others, time.Minute, time.Second)
					st := s.Stats()
					close(s.locked)
					s.all.Wait()
					t.Logf("%s, the others stay for %v, after %v: %.3f in the first seconds, then %.3f; %d parked, %d of %d slots in use",
						name, patience, before, first.share(), c.share(), st.Parked, st.InFlight, st.Limit)
					if c.share() < 0.99 { // a limit that has grown needs no trial
						t.Errorf("%s, the others stay for %v, after %v: %.3f of the others were answered in time, %d parked", name, patience, before, c.share(), st.Parked)
					}
					atRest(t, s.Limiter)
				})
			}
		}
	}
}

// The backend hangs for a minute. Each trial lets an eighth of the limit in, and trials that fail come
// less and less often: a dozen of them in a minute.
func TestLittleGoesIntoABackendThatHangs(t *testing.T) {
	soak.WithoutRace(t)
	for _, patience := range []time.Duration{0, time.Second} {
		for _, before := range []time.Duration{0, 30 * time.Second} {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, 16, Config{})
				quick := traffic{perSecond: 100, takes: 20 * time.Millisecond, patience: patience}
				send(s, quick, before, time.Second)
				h := make(chan struct{})
				s.hang.Store(&h)
				s.most.Store(0)
				send(s, quick, time.Minute, time.Second)
				if most := int(s.most.Load()); most > 96 { // three times the limit of the start
					t.Errorf("callers stay for %v, after %v: %d in the backend", patience, before, most)
				}
				s.hang.Store(nil)
				close(h)
				send(s, quick, 5*time.Second, time.Second)
				if c := send(s, quick, 10*time.Second, time.Second); c.share() < 0.99 {
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
	soak.WithoutRace(t)
	for _, patience := range []time.Duration{5 * time.Second, 10 * time.Second} {
		with, without := int64(0), int64(0)
		for range 4 {
			for aside, sum := range map[int]*int64{0: &with, -1: &without} {
				synctest.Test(t, func(t *testing.T) {
					s := serve(t, 32, Config{MaxAside: aside})
					c := send(s, traffic{perSecond: 24, takes: 2 * time.Second, patience: patience}, 3*time.Minute, patience)
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
			send(s, quick, 10*time.Second, time.Second)
			quick.waits = threeInTwenty
			for range 30 {
				send(s, quick, time.Second, time.Second)
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
		s := serve(t, 16, Config{LeakAfter: 20 * time.Second})
		quick := traffic{perSecond: 10, takes: 20 * time.Millisecond}
		send(s, quick, 10*time.Second, time.Second)
		stuck := traffic{perSecond: 1000, takes: time.Millisecond, waits: always(untilUnlocked)}
		send(s, stuck, 100*time.Millisecond, 0)
		send(s, quick, 30*time.Second, time.Second)
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
		close(s.locked)
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
		send(s, quick, 10*time.Second, time.Second)
		var stuck []Permit
		for range s.Limit() {
			stuck = append(stuck, acquire(t, s.Limiter))
		}
		send(s, quick, 30*time.Second, time.Second)
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

// Reports load the backend, and who is refused soon comes again, so that most arrivals are reports. A
// trial of reports is refuted by the reports that it let in. A second measurement that got no probe,
// since the first had filled the backend, left the work parked, and the next trial began at once:
// nearly all of 200 reports came to 32 slots.
//
// Events of one instant come in any order, and in one run of 240 the reports come all the same: two such runs
// in a row are a fault.
func TestReportsThatComeAgainDoNotFloodTheBackend(t *testing.T) {
	soak.WithoutRace(t)
	const most = 256 // mostly 64
	if first := mostOfReports(t); first > most {
		if second := mostOfReports(t); second > most {
			t.Errorf("%d and %d in a backend of 32 slots", first, second)
		}
	}
}

// mostOfReports is how many were in the backend at once.
func mostOfReports(t *testing.T) (most int64) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, 32, Config{})
		s.all.Go(func() {
			send(s, traffic{perSecond: 100, takes: 20 * time.Millisecond, patience: time.Second}, time.Minute, time.Second)
		})
		ended := time.Now().Add(time.Minute)
		for range 200 {
			s.all.Go(func() {
				for time.Now().Before(ended) {
					ctx, cancel := context.WithTimeout(spillway.WithKind(t.Context(), "report"), 4*time.Second)
					err := s.Do(ctx, func(ctx context.Context) error {
						enter(&s.inside, &s.most)
						defer s.inside.Add(-1)
						s.slots <- struct{}{}
						time.Sleep(2 * time.Second)
						<-s.slots
						return ctx.Err()
					})
					cancel()
					if err != nil {
						time.Sleep(100 * time.Millisecond)
					}
				}
			})
		}
		s.all.Wait()
		most = s.most.Load()
		atRest(t, s.Limiter)
	})
	return most
}

// A dependency that hangs once stopped work whose backend serves one after the other: the work that a
// trial let in at once was slow only because of its own number.
func TestADependencyThatHangsStopsNobodyBehindALock(t *testing.T) {
	soak.WithoutRace(t)
	for _, kinds := range [][2]string{{"read", "mail"}, {}} {
		for _, hangs := range []float64{0.15, 0.5} { // of the calls
			for _, patience := range []time.Duration{0, time.Second} {
				for _, before := range []time.Duration{0, 30 * time.Second} {
					synctest.Test(t, func(t *testing.T) {
						s := serve(t, 1, Config{})
						rnd := rand.New(rand.NewPCG(1, 2))
						calls := func(d time.Duration, hang bool) *count {
							c := &count{}
							for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Duration(rnd.ExpFloat64() * float64(time.Second/120))) {
								tr, kind := traffic{takes: time.Duration(math.Exp(0.3*rnd.NormFloat64()) * float64(2*time.Millisecond)), patience: patience}, kinds[0]
								if rnd.Float64() < hangs {
									kind = kinds[1]
									if hang {
										tr.waits = always(untilUnlocked)
									}
								}
								sendOne(spillway.WithKind(t.Context(), kind), s, tr, 0, time.Second, c)
							}
							return c
						}
						calls(before, false)
						c := calls(30*time.Second, true)
						close(s.locked)
						s.all.Wait()
						if share := c.share(); share < 0.95 {
							t.Errorf("kinds %q, %.2f hang, patience %v, after %v: %.3f of the others were answered in time", kinds, hangs, patience, before, share)
						}
						atRest(t, s.Limiter)
					})
				}
			}
		}
	}
}

// State once said that others are served beside parked work when no more work could be parked and nothing ended, and
// while the backend of the others hung.
func TestStateSaysServedOnlyOfOthersThatAre(t *testing.T) {
	const served = "parked: others are served beside them"
	quick := traffic{perSecond: 100, takes: 20 * time.Millisecond, patience: time.Second}
	mail := quick
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, 16, Config{MaxAside: 60})
		send(s, quick, 10*time.Second, time.Second)
		mail.waits = func(i int) time.Duration { return []time.Duration{0, untilUnlocked}[i%2] }
		send(s, mail, 20*time.Second, time.Second)
		if st := s.Stats(); st.Parked != 60 || !strings.Contains(st.State, "nothing has ended") || strings.Contains(st.State, "others are served") {
			t.Errorf("%d parked: %s", st.Parked, st.State)
		}
		close(s.locked)
		s.all.Wait()
		atRest(t, s.Limiter)
	})
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, 16, Config{})
		send(s, quick, 10*time.Second, time.Second)
		mail.waits = threeInTwenty
		send(s, mail, 20*time.Second, time.Second)
		if st := s.Stats(); st.Parked == 0 || !strings.Contains(st.State, served) {
			t.Errorf("%d parked: %s", st.Parked, st.State)
		}
		h := make(chan struct{})
		s.hang.Store(&h)
		send(s, mail, 3*time.Second, time.Second)
		for range 4 {
			send(s, mail, time.Second, time.Second)
			if st := s.Stats(); strings.Contains(st.State, served) {
				t.Errorf("%d parked, while the backend hangs: %s", st.Parked, st.State)
			}
		}
		s.hang.Store(nil)
		close(h)
		s.all.Wait()
		atRest(t, s.Limiter)
	})
}
