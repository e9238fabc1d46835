package periodic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/logtest"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

// The clock of a bubble begins at midnight UTC.
var midnight = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func nothing(time.Time) jobqueue.Job { return jobqueue.Job{} }

// each returns an entry that is due each minute, or as the schedule says.
func each(t *testing.T, spec string, catchUp time.Duration) Entry {
	return Entry{Name: "tidy", Schedule: parsed(t, spec, nil), Job: nothing, CatchUp: catchUp}
}

func opened(t *testing.T, cfg memory.Config) jobqueue.Queue {
	t.Helper()
	q, err := memory.Open(cfg)
	check(t, err)
	return q
}

// process is a scheduler with a clock of its own.
type process struct {
	*Scheduler
	ahead atomic.Int64 // how far the clock is ahead, in ns
	log   logtest.Log
	stop  func() error
}

// begin runs a scheduler in the background until stop.
func begin(t *testing.T, q jobqueue.Queue, ahead time.Duration, entries ...Entry) *process {
	t.Helper()
	p := new(process)
	var err error
	p.Scheduler, err = New(Config{Queue: q, Entries: entries, Logger: p.log.Logger()})
	check(t, err)
	p.ahead.Store(int64(ahead))
	p.now = func() time.Time { return wallClock().Add(time.Duration(p.ahead.Load())) }
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	p.stop = func() error { cancel(); return <-ended }
	synctest.Wait()
	return p
}

// set sets the clock.
func (p *process) set(by time.Duration) { p.ahead.Add(int64(by)) }

func (p *process) stats() stats { return p.read()[0] }

// until waits until a time of the first day.
func until(clock string) {
	hours, minutes, _ := strings.Cut(clock, ":")
	d, err := time.ParseDuration(hours + "h" + minutes + "m")
	if err != nil {
		panic(err)
	}
	time.Sleep(time.Until(midnight.Add(d)))
	synctest.Wait()
}

// stored runs all jobs that the queue has stored and returns their keys, without the usual beginning.
func stored(t *testing.T, q jobqueue.Queue) (keys []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan string, 10_000)
	go func() {
		_ = q.Work(ctx, func(_ context.Context, d *jobqueue.Delivery) error {
			done <- strings.TrimPrefix(d.Key, "tidy 2000-01-01T")
			return nil
		})
	}()
	synctest.Wait()
	cancel()
	synctest.Wait()
	close(done)
	for key := range done {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func wantStored(t *testing.T, q jobqueue.Queue, want ...string) {
	t.Helper()
	if got := stored(t, q); !slices.Equal(got, want) {
		t.Errorf("stored %q, want %q", got, want)
	}
}

// Five processes, whose clocks differ by up to 40 seconds, start and stop at different times.
func TestEachInstantRunsOnceOverAllProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := opened(t, memory.Config{})
		var all []*process
		for i := range 5 {
			all = append(all, begin(t, q, time.Duration(10*i-20)*time.Second, each(t, "* * * * *", 0)))
		}
		time.Sleep(100*time.Minute + 30*time.Second)
		synctest.Wait()
		var sum stats
		for _, p := range all {
			s := p.stats()
			sum.stored, sum.duplicates, sum.failures, sum.passed = sum.stored+s.stored, sum.duplicates+s.duplicates, sum.failures+s.failures, sum.passed+s.passed
			if err, log := p.stop(), p.log.Take(); !errors.Is(err, context.Canceled) || log != "" {
				t.Errorf("%v, %s", err, log)
			}
		}
		keys := stored(t, q)
		// The first process to show an instant stores it. Two clocks begin before midnight and catch up.
		if len(keys) != 102 || len(slices.Compact(keys)) != 102 || keys[0] != "00:00:00Z" || keys[100] != "01:40:00Z" || keys[101] != "tidy 1999-12-31T23:59:00Z" {
			t.Errorf("%d: %q", len(keys), keys)
		}
		if sum.stored != 102 || sum.duplicates < 4*100 || sum.failures != 0 || sum.passed != 0 {
			t.Errorf("%+v", sum)
		}
	})
}

// The first clock is 30 seconds ahead, and the last process starts as late as CatchUp allows.
func TestHowFarClocksMayDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := opened(t, memory.Config{Dedupe: 2 * time.Minute})
		first := begin(t, q, 30*time.Second, each(t, "0 1 * * *", 0))
		until("1:01")
		time.Sleep(29 * time.Second)
		b := begin(t, q, -29*time.Second, each(t, "0 1 * * *", 0))
		time.Sleep(time.Second)
		c := begin(t, q, -30*time.Second, each(t, "0 1 * * *", 0))
		if first.stats().stored != 1 || b.stats().duplicates != 1 || c.stats().stored != 1 {
			t.Errorf("%+v, %+v, %+v", first.stats(), b.stats(), c.stats())
		}
		_, _, _ = first.stop(), b.stop(), c.stop()
	})
}

func TestTheLatestInstantIsCaughtUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := opened(t, memory.Config{Dedupe: 5 * time.Hour})
		begun := func(catchUp time.Duration) stats {
			p := begin(t, q, 0, each(t, "0 * * * *", catchUp))
			synctest.Wait()
			_ = p.stop()
			return p.stats()
		}
		until("3:02")
		if s := begun(0); s.stored != 0 || s.passed != 0 || !s.last.IsZero() || !s.next.Equal(midnight.Add(4*time.Hour)) {
			t.Errorf("%+v", s)
		}
		if s := begun(2 * time.Minute); s.stored != 1 || !s.last.Equal(midnight.Add(3*time.Hour)) { // two minutes is not too late
			t.Errorf("%+v", s)
		}
		until("3:40")
		for range 3 { // each deployment is a start
			if s := begun(4 * time.Hour); s.stored != 0 || s.duplicates != 1 {
				t.Errorf("%+v", s)
			}
		}
		wantStored(t, q, "03:00:00Z") // neither 02:00 nor 01:00
	})
}

// away is a queue whose Enqueue fails.
type away struct {
	jobqueue.Queue
	err   atomic.Pointer[error]
	calls atomic.Int64
}

func (q *away) fail(err error) { q.err.Store(&err) }

func (q *away) Enqueue(ctx context.Context, job jobqueue.Job) (jobqueue.Receipt, error) {
	q.calls.Add(1)
	if err := q.err.Load(); err != nil && *err != nil {
		return jobqueue.Receipt{}, *err
	}
	return q.Queue.Enqueue(ctx, job)
}

func TestAnEngineThatIsAwayIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &away{Queue: opened(t, memory.Config{})}
		q.fail(jobqueue.ErrUnavailable)
		p := begin(t, q, 0, each(t, "0 1-20 * * *", 0), Entry{Name: "other", Schedule: parsed(t, "0 3 * * *", nil), Job: nothing})
		// For 40 seconds.
		until("1:00")
		time.Sleep(40*time.Second - 1)
		q.fail(nil)
		time.Sleep(time.Second)
		synctest.Wait()
		if s := p.stats(); s.stored != 1 || s.failures != 40 || s.passed != 0 {
			t.Errorf("%+v", s)
		}
		if log := p.log.Take(); strings.Count(log, "\n") != 2 || !strings.Contains(log, "tried again") || !strings.Contains(log, "after all") {
			t.Error(log)
		}
		// For longer than CatchUp.
		q.fail(jobqueue.ErrUnavailable)
		until("2:10")
		if s := p.stats(); s.stored != 1 || s.failures != 40+61 || s.passed != 1 {
			t.Errorf("%+v", s)
		}
		if log := p.log.Take(); strings.Count(log, "\n") != 2 || !strings.Contains(log, "level=ERROR") || !strings.Contains(log, "catch_up=1m0s") {
			t.Error(log)
		}
		// Not for two entries at once, in the log of either.
		until("3:00")
		if log := p.log.Take(); strings.Count(log, "tried again") != 2 {
			t.Error(log)
		}
		q.fail(nil)
		until("5:10")
		wantStored(t, q, "01:00:00Z", "03:00:00Z", "04:00:00Z", "05:00:00Z", "other 2000-01-01T03:00:00Z")
		_ = p.stop()
	})
}

// An instant each second, and an engine that is away for ten minutes.
func TestTheLogStaysShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &away{Queue: opened(t, memory.Config{})}
		q.fail(jobqueue.ErrUnavailable)
		p := begin(t, q, 0, each(t, "@every 1s", 0))
		until("0:10")
		q.fail(nil)
		until("0:11")
		if log, s := p.log.Take(), p.stats(); strings.Count(log, "\n") != 1+11+1 || strings.Count(log, "cannot be reached") != 12 || s.passed != 601 || s.stored != 60 {
			t.Errorf("%+v, %s", s, log)
		}
		_ = p.stop()
	})
}

// A call of time.Now also has the monotonic clock, by which no clock is ever set.
func TestTheWallClockIsRead(t *testing.T) {
	if now := wallClock().String(); strings.Contains(now, "m=") {
		t.Error(now)
	}
}

func TestAFullQueueIsTriedAgainWhenItAdvises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &away{Queue: opened(t, memory.Config{})}
		q.fail(fmt.Errorf("full: %w", &spillway.Rejection{Reason: spillway.ReasonQueueFull, RetryAfter: 7 * time.Second}))
		p := begin(t, q, 0, each(t, "0 1 * * *", 0))
		until("1:00")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n := q.calls.Load(); n != 5 {
			t.Errorf("%d calls in 30 seconds", n)
		}
		_ = p.stop()
	})
}

func TestAClockThatIsSet(t *testing.T) {
	for _, c := range []struct {
		what  string
		at    string        // when the clock is set
		by    time.Duration // how far
		want  []string      // stored until half past three by the right clock
		stats stats
	}{
		{"a little ahead", "0:59", 90 * time.Second, []string{"01:00:00Z", "02:00:00Z", "03:00:00Z"}, stats{stored: 3}},
		{"far ahead", "0:30", time.Hour, []string{"02:00:00Z", "03:00:00Z", "04:00:00Z"}, stats{stored: 3, passed: 1}},
		{"ahead of several", "0:30", 2*time.Hour + 30*time.Minute + 20*time.Second, []string{"03:00:00Z", "04:00:00Z", "05:00:00Z", "06:00:00Z"}, stats{stored: 4, passed: 1}},
		{"a little back", "1:01", -90 * time.Second, []string{"01:00:00Z", "02:00:00Z", "03:00:00Z"}, stats{stored: 3, duplicates: 1}},
		{"far back", "1:30", -time.Hour, []string{"01:00:00Z", "01:00:00Z", "02:00:00Z"}, stats{stored: 3}},
		{"back between two instants", "1:50", -45 * time.Minute, []string{"01:00:00Z", "02:00:00Z"}, stats{stored: 2}},
	} {
		t.Run(c.what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := opened(t, memory.Config{})
				p := begin(t, q, 0, each(t, "0 1-23 * * *", 0))
				until(c.at)
				p.set(c.by)
				until("3:30")
				wantStored(t, q, c.want...)
				s := p.stats()
				if s.stored != c.stats.stored || s.duplicates != c.stats.duplicates || s.passed != c.stats.passed || s.failures != 0 {
					t.Errorf("%+v", s)
				}
				again := c.by < 0 && c.what != "back between two instants"
				if log := p.log.Take(); strings.Count(log, "\n") != int(s.passed) && !again || strings.Contains(log, "set back") != again {
					t.Error(log)
				}
				_ = p.stop()
			})
		})
	}
}

// The clock of a machine without a battery begins in 1970, or a broken one in 2099.
func TestAClockThatWasWrongAtTheStart(t *testing.T) {
	for _, years := range []int{-30, 99} {
		synctest.Test(t, func(t *testing.T) {
			q := opened(t, memory.Config{})
			wrong := midnight.AddDate(years, 0, 0).Sub(midnight)
			p := begin(t, q, wrong, each(t, "* * * * *", 366*24*time.Hour))
			p.set(-wrong)
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			s := p.stats()
			_ = p.stop()
			if keys := stored(t, q); len(keys) < 6 || !slices.Contains(keys, "00:05:00Z") || s.last != midnight.Add(5*time.Minute) {
				t.Errorf("%q, %+v", keys, s)
			}
		})
	}
}

// A process that was suspended looks at the clock within 10 seconds, not when its timer would have ended.
func TestAProcessThatWasSuspendedLooksAtTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := opened(t, memory.Config{})
		p := begin(t, q, 0, each(t, "0 6 * * *", 0))
		time.Sleep(time.Minute)
		p.set(6*time.Hour - time.Minute) // its timers did not run
		time.Sleep(lookEvery)
		synctest.Wait()
		wantStored(t, q, "06:00:00Z")
		_ = p.stop()
	})
}

func TestARollingUpdateThatChangesASchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := opened(t, memory.Config{})
		before, after := each(t, "0 */2 * * *", 0), each(t, "0 */3 * * *", 0)
		before.Job = func(time.Time) jobqueue.Job { return jobqueue.Job{Payload: []byte("before")} }
		old := begin(t, q, 0, before)
		until("2:01")
		next := begin(t, q, 0, after)
		until("6:01")
		_ = old.stop()
		until("9:01")
		wantStored(t, q, "00:00:00Z", "02:00:00Z", "03:00:00Z", "04:00:00Z", "06:00:00Z", "09:00:00Z")
		_ = next.stop()
	})
}

func TestRunEnds(t *testing.T) {
	t.Run("with its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := begin(t, opened(t, memory.Config{}), 0)
			cause := p.stop()
			if !errors.Is(cause, context.Canceled) {
				t.Error(cause)
			}
		})
	})
	t.Run("during a call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q := &away{Queue: opened(t, memory.Config{})}
			p := begin(t, hung{q}, 0, each(t, "* * * * *", 0))
			if err, log := p.stop(), p.log.Take(); !errors.Is(err, context.Canceled) || log != "" {
				t.Errorf("%v, %s", err, log)
			}
		})
	})
	for what, end := range map[string]func(jobqueue.Queue) error{
		"with a drained queue": func(q jobqueue.Queue) error { return q.Drain(context.Background()) },
		"with a closed queue":  func(q jobqueue.Queue) error { return q.Close() },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := opened(t, memory.Config{})
				s, err := New(Config{Queue: q, Entries: []Entry{each(t, "0 1 * * *", 0)}})
				check(t, err)
				check(t, end(q))
				if err := s.Run(t.Context()); err != nil || time.Since(midnight) != time.Hour {
					t.Errorf("%v after %v", err, time.Since(midnight))
				}
			})
		})
	}
}

// hung is a queue that does not answer.
type hung struct{ jobqueue.Queue }

func (hung) Enqueue(ctx context.Context, _ jobqueue.Job) (jobqueue.Receipt, error) {
	<-ctx.Done()
	return jobqueue.Receipt{}, ctx.Err()
}

func TestAPanicOfJobLeavesRun(t *testing.T) {
	e := each(t, "* * * * *", 0)
	e.Job = func(time.Time) jobqueue.Job { panic("no job") }
	s, err := New(Config{Queue: opened(t, memory.Config{}), Entries: []Entry{e}})
	check(t, err)
	defer func() {
		if got := recover(); got != "no job" {
			t.Errorf("%v", got)
		}
	}()
	_ = s.Run(t.Context())
}

func TestTheJobIsThatOfItsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := opened(t, memory.Config{})
		berlin := zone(t, "Europe/Berlin")
		p := begin(t, q, 0, Entry{Name: "a name", Schedule: parsed(t, "30 3 * * *", berlin), Job: func(at time.Time) jobqueue.Job {
			return jobqueue.Job{Key: "mine", Payload: []byte(at.String()), Priority: spillway.High}
		}})
		ctx, cancel := context.WithCancel(t.Context())
		_ = q.Work(ctx, func(_ context.Context, d *jobqueue.Delivery) error {
			defer cancel()
			if d.Key != "a name 2000-01-01T02:30:00Z" || string(d.Payload) != "2000-01-01 03:30:00 +0100 CET" || d.Priority != spillway.High {
				t.Errorf("%+v", d)
			}
			return nil
		})
		_ = p.stop()
	})
}

func TestABadConfigurationNamesAllFaults(t *testing.T) {
	good := each(t, "* * * * *", 0)
	_, err := New(Config{Entries: []Entry{good, good, {}, {Name: strings.Repeat("n", 201), Schedule: good.Schedule, Job: nothing, CatchUp: -1},
		{Name: "\xff", Schedule: good.Schedule, Job: nothing, CatchUp: time.Second}}})
	want := `periodic: Queue is not set
Entries[1] ("tidy"): Name is that of an earlier entry
Entries[2] (""): Name is not set
Entries[2] (""): Schedule is not set: use Parse
Entries[2] (""): Job is not set
Entries[3] ("nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"): Name is not UTF-8 of at most 200 bytes
Entries[3] ("nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"): CatchUp is -1ns: use 10s to 8784h0m0s, or 0
Entries[4] ("\xff"): Name is not UTF-8 of at most 200 bytes
Entries[4] ("\xff"): CatchUp is 1s: use 10s to 8784h0m0s, or 0`
	if err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}
