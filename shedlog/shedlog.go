// Package shedlog logs load shedding of a limiter in a few lines: one line at the onset,
// one line a period while shedding lasts, and one line when shedding is over. A log with a
// line for each refused request would add to the overload.
//
//	shed := shedlog.New(shedlog.Config{Logger: logger})
//	lim, err := limiter.New(limiter.Config{Observer: &limiter.Observer{Rejected: shed.Rejected}})
//	shed.Watch(lim)
//
// No data of a request is logged. The lines contain counts by reason and priority, the
// limit, the text of Stats.State, and the kinds of work that were refused most.
//
// Services behind package admissionhttp get the same lines from admissionhttp.Config.Logger. What a
// dry run would have refused needs a Log of its own: see [Log.Rejected].
//
// # Cost
//
// A refusal costs the counting of the observer.
//
// # Pitfalls
//
//   - A limiter has one observer. [limiter.Observers] joins several.
//   - Call Close after the drain. Otherwise the last line is missing.
//
// # When not to use it
//
// A record of every refusal is an audit, which belongs before admission.
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

// Config sets the logger and the rate of lines. The zero value works.
type Config struct {
	// Logger gets all lines; nil means slog.Default. Shedding has the level Warn, the end
	// of shedding the level Info.
	Logger *slog.Logger

	// Period is the least time between two lines; zero or less means 10 s. Shedding
	// is over when a whole period has passed without a refusal.
	Period time.Duration
}

const defaultPeriod = 10 * time.Second

// Log writes the lines of one limiter. A Log is safe for concurrent use. Between the onset
// and the end of shedding a Log has a timer. Outside of shedding a Log runs nothing.
type Log struct {
	logger  *slog.Logger
	period  time.Duration
	watched atomic.Pointer[limiter.Limiter]

	mu     sync.Mutex
	timer  *time.Timer // nil: not shedding
	closed bool
	began  time.Time // time of the first refusal
	wrote  time.Time // time of the last line
	now    counts    // refused since the last line
	before uint64    // refused from the onset to the last line

	kinds   map[string]uint64 // refusals of the watched limiter up to the last line, by kind; guarded by writing
	writing sync.Mutex
}

// counts are numbers of refusals: in total, by reason and by priority.
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

// Watch adds the name, the limit, the state and the refused kinds of lim to all later lines. What a dry run
// would have refused has no kinds.
func (l *Log) Watch(lim *limiter.Limiter) {
	l.watched.Store(lim)
	l.refused(lim.Stats())
}

// refused returns the refusals of each kind since the last call.
func (l *Log) refused(s limiter.Stats) map[string]uint64 {
	l.writing.Lock()
	defer l.writing.Unlock()
	since, all := map[string]uint64{}, make(map[string]uint64, len(s.ByKind))
	for name, k := range s.ByKind {
		all[name] = k.Rejected
		if n := k.Rejected - min(l.kinds[name], k.Rejected); n > 0 && name != "" {
			since[name] = n
		}
	}
	l.kinds = all
	return since
}

// Rejected counts a refusal. Rejected is the function for limiter.Observer.Rejected; code without
// an observer may call Rejected itself. Rejected never waits for the logger. Refusals because the
// limiter drains or is closed are not overload and are not counted.
//
// As the WouldReject of an observer, Rejected logs what a dry run would have refused:
//
//	dry := shedlog.New(shedlog.Config{Logger: logger.With("dry_run", true)})
//	lim, err := limiter.New(limiter.Config{Observer: &limiter.Observer{WouldReject: dry.Rejected}})
//	dry.Watch(lim)
func (l *Log) Rejected(p spillway.Priority, r *spillway.Rejection) {
	if r.Reason == spillway.ReasonDraining || r.Reason == spillway.ReasonClosed {
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

// line writes the line that is due and, while shedding lasts, sets the timer for the next.
func (l *Log) line() {
	write, more := l.take(false)
	write()
	l.mu.Lock()
	defer l.mu.Unlock()
	if more && !l.closed {
		l.timer.Reset(l.period)
	}
}

// Close writes the last line if shedding is not over, and stops the timer. Later refusals
// are not logged.
func (l *Log) Close() {
	write, _ := l.take(true)
	write()
}

// take returns a function that writes the line that is due, and whether more lines follow. The
// caller must not hold the lock when it calls write, because a refusal must not wait for the
// logger.
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
		if kinds := most(l.refused(s)); len(kinds) > 0 && c.n > 0 && lim.Open() { // once it is closed, other refusals are among them
			attrs = append(attrs, slog.Attr{Key: "kinds", Value: slog.GroupValue(kinds...)})
		}
		attrs = append(attrs, slog.String("limiter", s.Name), slog.Int("limit", s.Limit), slog.String("state", s.State))
	}
	l.logger.LogAttrs(context.Background(), level, message, attrs...)
}

// mostKinds is how many kinds a line names.
const mostKinds = 3

// most returns the highest counts, the highest first.
func most(of map[string]uint64) (attrs []slog.Attr) {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
	for _, name := range names[:min(len(names), mostKinds)] {
		attrs = append(attrs, slog.Uint64(name, of[name]))
	}
	return attrs
}

// group returns the counts sorted by key, so that two lines can be compared.
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
