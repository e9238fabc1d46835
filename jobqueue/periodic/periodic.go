package periodic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
)

// Entry says what to enqueue and when.
type Entry struct {
	// Name identifies the entry in all processes and versions: a job's key is the name and the instant.
	Name     string
	Schedule Schedule
	// Job returns the job of an instant. The instant has the location of the schedule. Run calls Job in
	// each process, and again for each call of Enqueue that failed, so Job should return the same each
	// time and do no work. The job's Key is replaced. A panic leaves Run.
	Job func(at time.Time) jobqueue.Job
	// CatchUp is how late an instant may be enqueued. Zero means one minute, and 10 seconds are the
	// least. The package comment says which Dedupe CatchUp needs.
	CatchUp time.Duration
}

// Config is the configuration of a Scheduler.
type Config struct {
	Queue   jobqueue.Queue
	Entries []Entry
	Logger  *slog.Logger // failed calls of Enqueue, instants that were passed over, clocks that were set; default: no log
}

const (
	defaultCatchUp = time.Minute
	leastCatchUp   = lookEvery
	mostCatchUp    = 366 * 24 * time.Hour
	longestName    = 200

	lookEvery  = 10 * time.Second // timers do not notice that the clock was set or the machine suspended
	retryEvery = time.Second
	warnEvery  = time.Minute // lines of the log, for each entry
)

// stats is a snapshot of an entry in this process, for the metrics.
type stats struct {
	next time.Time // the next instant; zero until Run is called
	last time.Time // the latest instant that this process knows to be enqueued, by whichever process; zero: none

	stored     uint64 // instants whose job this process stored
	duplicates uint64 // instants whose job was stored already
	failures   uint64 // calls of Enqueue that failed
	// passed counts the occasions on which this process enqueued nothing for one or more instants, since
	// the engine was away, the clock was set ahead or the process stood still. Other processes may have
	// enqueued these instants.
	passed uint64
}

// Scheduler enqueues the jobs of its entries. [Metrics] shows what it has done.
type Scheduler struct {
	queue   jobqueue.Queue
	entries []Entry
	log     *slog.Logger
	now     func() time.Time // a wall clock

	mu    sync.Mutex
	stats []stats // of each entry
}

// New checks the configuration and starts nothing. The error names all faults.
func New(cfg Config) (*Scheduler, error) {
	s := &Scheduler{queue: cfg.Queue, log: cfg.Logger, now: wallClock}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var faults []error
	fault := func(wrong bool, format string, args ...any) {
		if wrong {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(cfg.Queue == nil, "Queue is not set")
	names := map[string]bool{}
	for i, e := range cfg.Entries {
		at := fmt.Sprintf("Entries[%d] (%.40q)", i, e.Name)
		fault(e.Name == "", "%s: Name is not set", at)
		fault(len(e.Name) > longestName || !utf8.ValidString(e.Name), "%s: Name is not UTF-8 of at most %d bytes", at, longestName)
		fault(names[e.Name], "%s: Name is that of an earlier entry", at)
		fault(e.Schedule.loc == nil, "%s: Schedule is not set: use Parse", at)
		fault(e.Job == nil, "%s: Job is not set", at)
		e.CatchUp = cmp.Or(e.CatchUp, defaultCatchUp)
		fault(e.CatchUp < leastCatchUp || e.CatchUp > mostCatchUp, "%s: CatchUp is %s: use %s to %s, or 0", at, e.CatchUp, leastCatchUp, mostCatchUp)
		names[e.Name] = true
		s.entries, s.stats = append(s.entries, e), append(s.stats, stats{})
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("periodic: %w", err)
	}
	return s, nil
}

// errEnded means that the queue of this process takes no more jobs.
var errEnded = errors.New("periodic: the queue is drained or closed")

// progress is the state of an entry while Run runs.
type progress struct {
	track
	failed error     // the last error of Enqueue, until a call succeeds or no instant is due
	warned time.Time // when a line of the log last said that instants were passed over
}

// Run enqueues the entries' jobs until ctx ends, and returns ctx's error. It returns nil once the queue
// is drained or closed, which it notices at the next instant. When ctx ends during a call of Enqueue,
// the job may have been stored. Run may be called again, but not while it runs.
func (s *Scheduler) Run(ctx context.Context) error {
	all := make([]progress, len(s.entries))
	now := s.now()
	for i, e := range s.entries {
		all[i].schedule, all[i].catchUp = e.Schedule, e.CatchUp
		all[i].start(now)
	}
	for {
		wait := lookEvery
		for i := range all {
			s.advance(i, &all[i])
			if all[i].due.IsZero() {
				continue
			}
			retry, err := s.enqueue(ctx, i, &all[i])
			switch {
			case errors.Is(err, errEnded):
				return nil
			case err != nil:
				return err
			case retry > 0:
				wait = min(wait, retry)
			}
		}
		now := s.now()
		for i := range all {
			wait = min(wait, s.next(i, all[i].track).Sub(now))
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// advance reads the clock for an entry, and reports what is out of the ordinary.
func (s *Scheduler) advance(i int, p *progress) {
	passed, again := p.track.advance(s.now())
	if again {
		s.log.Warn("the clock was set back: instants of a periodic job come again", "entry", s.entries[i].Name, "now", p.seen)
	}
	if passed {
		s.mu.Lock()
		s.stats[i].passed++
		s.mu.Unlock()
		if p.seen.Sub(p.warned).Abs() >= warnEvery {
			s.log.Warn("nothing was enqueued here for an instant of a periodic job: the engine was away, the clock was set ahead or the process stood still",
				"entry", s.entries[i].Name, "now", p.seen, "catch_up", p.catchUp, "error", p.failed)
			p.warned = p.seen
		}
	}
	if p.due.IsZero() {
		p.failed = nil
	}
}

// enqueue enqueues the job of the instant that is due. retry is the wait before the next call for this
// instant; zero: the job is stored. The error ends Run.
func (s *Scheduler) enqueue(ctx context.Context, i int, p *progress) (retry time.Duration, err error) {
	e, at := s.entries[i], p.due
	job := e.Job(at)
	job.Key = e.Name + " " + at.UTC().Format(time.RFC3339)
	receipt, err := s.queue.Enqueue(ctx, job)
	s.count(i, at, receipt, err)
	if err == nil {
		if p.failed != nil {
			s.log.Info("a periodic job is enqueued after all", "entry", e.Name, "at", at)
		}
		p.due, p.failed = time.Time{}, nil
		return 0, nil
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	retry = retryEvery
	if rejection, ok := errors.AsType[*spillway.Rejection](err); ok {
		if rejection.Reason == spillway.ReasonDraining || rejection.Reason == spillway.ReasonClosed {
			return 0, errEnded
		}
		retry = max(retry, rejection.RetryAfter)
	}
	if p.failed == nil {
		s.log.Error("a periodic job is not enqueued, and tried again", "entry", e.Name, "at", at, "error", err)
	}
	p.failed = err
	return retry, nil
}

// count counts a call of Enqueue.
func (s *Scheduler) count(i int, at time.Time, receipt jobqueue.Receipt, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &s.stats[i]
	switch {
	case err != nil:
		st.failures++
		return
	case receipt.Duplicate:
		st.duplicates++
	default:
		st.stored++
	}
	st.last = at
}

// next returns the next instant of an entry.
func (s *Scheduler) next(i int, t track) time.Time {
	next := t.schedule.Next(t.seen)
	s.mu.Lock()
	s.stats[i].next = next
	s.mu.Unlock()
	return next
}

// read returns a snapshot of each entry, in the order of Config.Entries.
func (s *Scheduler) read() []stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.stats)
}

// wallClock returns the time without the monotonic clock, which does not show that the clock was set.
func wallClock() time.Time { return time.Now().Round(0) }

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
