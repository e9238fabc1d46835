// Package shedlog logs that a limiter sheds, and no more than that: a line at the
// onset, one a period while it lasts, and one when it is over. A log with a line for
// each refused request would be part of the overload.
//
//	shed := shedlog.New(shedlog.Config{Logger: logger})
//	lim, err := limiter.New(limiter.Config{Name: "database", Observer: shed.Observer()})
//	shed.Watch(lim)
//
// Nothing of a request is logged: lines have counts by reason and priority, the limit,
// and the words of Stats.State.
package shedlog

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
)

// Config says where lines go and how many. The zero value works.
type Config struct {
	// Logger gets all lines; nil means slog.Default. Shedding is a warning, its end an
	// information.
	Logger *slog.Logger

	// Period is the least time between two lines; zero or less means 10 s. Shedding
	// is over when a whole period has passed without a refusal.
	Period time.Duration
}

const defaultPeriod = 10 * time.Second

// Log writes the lines of one limiter. It is safe for concurrent use. Between the
// onset of shedding and its end it has a timer, and otherwise nothing that runs.
type Log struct {
	logger  *slog.Logger
	period  time.Duration
	watched atomic.Pointer[limiter.Limiter]

	mu     sync.Mutex
	timer  *time.Timer // nil: not shedding
	closed bool
	began  time.Time // of the refusal at the onset
	wrote  time.Time // the last line
	now    counts    // since the last line
	before uint64    // refused from the onset to the last line
}

// counts are of refusals.
type counts struct {
	n          uint64
	byReason   map[spillway.Reason]uint64
	byPriority map[spillway.Priority]uint64
}

// New returns a Log.
func New(cfg Config) *Log {
	if cfg.Period <= 0 {
		cfg.Period = defaultPeriod
	}
	return &Log{logger: cmp.Or(cfg.Logger, slog.Default()), period: cfg.Period, now: none()}
}

func none() counts {
	return counts{byReason: map[spillway.Reason]uint64{}, byPriority: map[spillway.Priority]uint64{}}
}

// Observer returns what limiter.Config.Observer may be; limiter.Observers joins it
// with others.
func (l *Log) Observer() *limiter.Observer { return &limiter.Observer{Rejected: l.Rejected} }

// Watch adds name, limit and state of a limiter to each line that follows.
func (l *Log) Watch(lim *limiter.Limiter) { l.watched.Store(lim) }

// Rejected counts a refusal, for code that has no observer of its limiter. It never
// waits for the logger. What is refused because the limiter drains or is closed is no
// overload and not counted.
func (l *Log) Rejected(p spillway.Priority, r *spillway.Rejection) {
	if r.Reason == spillway.Draining || r.Reason == spillway.Closed {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.now.n++
	l.now.byReason[r.Reason]++
	l.now.byPriority[p]++
	if l.timer == nil {
		now := time.Now()
		l.began, l.before = now, 0
		l.timer = time.AfterFunc(max(l.wrote.Add(l.period).Sub(now), 0), l.line)
	}
}

// line writes what is due and, while shedding lasts, asks for the next line.
func (l *Log) line() {
	write, more := l.take(false)
	write()
	l.mu.Lock()
	defer l.mu.Unlock()
	if more && !l.closed {
		l.timer.Reset(l.period)
	}
}

// Close writes the last line if shedding is not over, and stops the timer. What is
// refused later is not logged.
func (l *Log) Close() {
	write, _ := l.take(true)
	write()
}

// take returns what writes the line that is due, outside of the lock because a
// refusal must not wait for it, and whether there will be more.
func (l *Log) take(last bool) (write func(), more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || last && l.timer == nil {
		l.closed = l.closed || last
		return func() {}, false
	}
	now := time.Now()
	c, lasted := l.now, now.Sub(l.began).Round(time.Millisecond)
	l.before, l.wrote, l.now = l.before+c.n, now, none()
	total := l.before
	if c.n > 0 && !last {
		return func() { l.write(slog.LevelWarn, "shedding", c, nil) }, true
	}
	l.timer.Stop()
	l.timer, l.closed = nil, last
	return func() {
		l.write(slog.LevelInfo, "shedding is over", c, []slog.Attr{slog.Uint64("refused_in_all", total), slog.Duration("after", lasted)})
	}, false
}

func (l *Log) write(level slog.Level, message string, c counts, more []slog.Attr) {
	attrs := []slog.Attr{slog.Uint64("refused", c.n)}
	if c.n > 0 {
		attrs = append(attrs, group("reasons", c.byReason), group("priorities", c.byPriority))
	}
	attrs = append(attrs, more...)
	if lim := l.watched.Load(); lim != nil {
		s := lim.Stats()
		attrs = append(attrs, slog.String("limiter", s.Name), slog.Int("limit", s.Limit), slog.String("state", s.State))
	}
	l.logger.LogAttrs(context.Background(), level, message, attrs...)
}

// group has the counts in order, so that two lines can be compared.
func group[K interface {
	cmp.Ordered
	String() string
}](name string, counts map[K]uint64) slog.Attr {
	var attrs []slog.Attr
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		attrs = append(attrs, slog.Uint64(k.String(), counts[k]))
	}
	return slog.Attr{Key: name, Value: slog.GroupValue(attrs...)}
}
