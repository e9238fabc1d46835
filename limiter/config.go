package limiter

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/internal/laws"
	"github.com/spillway-go/spillway/limit"
)

// Config configures a Limiter. The zero value works.
type Config struct {
	// Name labels the limiter in metrics and reports.
	Name string

	// Law decides how much may run at once. Nil means limit.NewAdaptive, which learns the
	// limit, or limit.NewPassive in a dry run. The limiter owns the law: one value serves
	// one limiter.
	//
	// A panic of a user-defined law is raised again, as a *spillway.PanicError with the
	// law's stack, by New, the next Acquire that admits work, the next end of a permit or
	// Stats. The panic may reach a caller whose work did not cause it. A panic costs no
	// slot and leaves the limit unchanged, and the limiter calls the law again.
	// A law that calls runtime.Goexit ends the goroutine of such a caller, whose deferred calls run, and the
	// limiter goes on in the same way. Stats().State counts both. The limiter calls the law one call at a time,
	// at the end of each operation.
	Law limit.Law

	// QueueSize is how many callers may wait. Zero means 16,384, which only bounds
	// memory: a caller that would wait too long is refused long before the queue is
	// full. Negative means that no caller waits.
	QueueSize int

	// MaxWait bounds every wait, also if the deadline is later. Zero means 10 seconds.
	// MaxWait cannot be negative, except for NoMaxWait. A caller that must not wait uses
	// TryAcquire.
	//
	// Shorter bounds refuse work on arrival, by its predicted wait: what waits ahead, and
	// how long work has taken of late. In a burst, the bound is eight typical service
	// times, or three times the time of slow work if that is longer. Without a deadline
	// the bound is half as long, at most a second. Either bound is at least 100 ms. Once
	// demand has exceeded the capacity for five times the bound, work may wait for about
	// one service time. While demand is within the capacity, five times the bound applies.
	//
	// A prediction can be wrong, and the shorter bounds do not end a wait that has begun:
	// only MaxWait and the context do. Behind slots held by work whose backend hangs, and
	// before any work has ended, work without a deadline may wait for all of MaxWait.
	MaxWait time.Duration

	// Mode is the initial mode; zero means Enforce. SetMode changes the mode at any time.
	Mode Mode

	// MaxRefused is the share of the arrivals of the last ten seconds, below 1, that may
	// be refused for lack of capacity. Beyond that share, work is admitted over the
	// limit. Zero means no bound. Work that could not meet its deadline even if it
	// started at once is refused even beyond that share.
	MaxRefused float64

	// Signals press the limit down for reasons that latency does not show. One
	// value serves one limiter.
	Signals []Signal

	// IgnoreProcessors disables shedding for lack of processors. By default, a limiter
	// without a user-defined Law sheds some of the arrivals, the least important first,
	// while goroutines wait too long for a processor: requests are then late before a
	// limiter sees them, at any limit. A wait is too long above a quarter of the mean
	// time of work, at least 100 ms and at most 250 ms. Nothing is shed if arrivals do
	// not cause the wait, or if most arrivals are in a dry run. If some limiter is at
	// the front of the process (see Limiter.Front), only limiters at the front shed.
	//
	// A trial may shed healthy work. If a wait of two bounds or more lasts for half a second and the
	// arrivals do not explain the wait, three of four arrivals are shed: for half a second or two waits,
	// for two seconds if the wait becomes shorter meanwhile, and for as long as the wait grows. This
	// happens beside other work of the process that fills the processors, such as a batch or a backup.
	// If the trial shows that shedding does not help, shedding pauses for eight times as long as it
	// lasted, and each time for at least twice as long, up to a minute; a pause ends early once the wait
	// has doubled. Set IgnoreProcessors where such work is expected.
	IgnoreProcessors bool

	// SlowStart is for a process that starts cold. From the first arrival the limit
	// grows linearly, over the duration SlowStart, from one slot to its full value.
	// Zero means no slow start.
	SlowStart time.Duration

	// MaxAside bounds how much work may run without its slots: paused work, and overdue work
	// beside which others are served in their usual time. Beyond MaxAside such work keeps its
	// slots. Zero means 4,096, negative means none. Overdue work gives up slots only under the
	// default law, which finds the limit by trials: a Law of your own and NoMaxWait bound
	// exactly what runs.
	MaxAside int

	// LeakAfter finds permits that were never ended: a permit older than LeakAfter is
	// reported once, with its call site. Zero means off and costs nothing; otherwise
	// every admission records its call stack. Reports are made while the limiter is
	// used, and by Stats.
	LeakAfter time.Duration

	// Observer receives decisions as they are made; nil costs nothing. New copies
	// the Observer.
	Observer *Observer
}

// NoMaxWait is a Config.MaxWait with which a caller waits as long as its context allows: for
// a batch, whose callers have nothing better to do than wait. Neither MaxWait nor a shorter
// bound nor a deadline that is too close refuses work. QueueSize still bounds how many wait.
// Within a priority, large work is never passed by later work. Under overload such a limiter
// has a long queue and late answers: the limit still protects what is behind the limiter, but
// the callers are not protected.
const NoMaxWait time.Duration = math.MinInt64

const (
	defaultMaxWait = 10 * time.Second
	longestWait    = forever / 4 // in effect for ever; adding other times does not overflow
	defaultQueue   = 16384
	defaultAside   = 4096
	forever        = time.Duration(math.MaxInt64)
)

// check returns all errors in the configuration.
func (cfg *Config) check() error {
	var wrong []error
	fault := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("limiter: "+format, args...)) }
	if cfg.Law != nil && isNil(cfg.Law) {
		fault("Law is a nil %T: look at the error of its constructor", cfg.Law)
	}
	if cfg.MaxWait < 0 && cfg.MaxWait != NoMaxWait {
		fault("MaxWait is %v: it cannot be negative (zero means %v)", cfg.MaxWait, defaultMaxWait)
	}
	if cfg.Mode > Off {
		fault("unknown mode %d: use Enforce, DryRun or Off", cfg.Mode)
	}
	if !(cfg.MaxRefused >= 0 && cfg.MaxRefused < 1) {
		fault("MaxRefused is %v: use a share from 0 (no bound) to less than 1", cfg.MaxRefused)
	}
	if cfg.SlowStart < 0 {
		fault("SlowStart is %v: it cannot be negative (zero means none)", cfg.SlowStart)
	}
	if cfg.LeakAfter < 0 {
		fault("LeakAfter is %v: it cannot be negative (zero means off)", cfg.LeakAfter)
	}
	cfg.checkSignals(fault)
	if len(wrong) == 0 {
		wrong = cfg.claim()
	}
	return errors.Join(wrong...)
}

func (cfg *Config) checkSignals(fault func(format string, args ...any)) {
	for i, s := range cfg.Signals {
		if isNil(s) {
			fault("signal %d is nil", i)
		} else if g, ok := s.(*gauge); ok && (g.name == "" || g.read == nil || !(g.limit > 0)) {
			fault("signal %d: a gauge needs a name, a function and a limit above zero", i)
		}
	}
}

// claim takes ownership of the signals and the law for the limiter. It returns an error
// for each that has an owner. The law comes last, because a claim on a law is final.
func (cfg *Config) claim() (wrong []error) {
	var mine []ownable
	for i, s := range cfg.Signals {
		if o, ok := s.(ownable); !ok {
			continue
		} else if o.claim() {
			mine = append(mine, o)
		} else {
			wrong = append(wrong, fmt.Errorf("limiter: signal %d (%s) belongs to another limiter: give each its own", i, s.Name()))
		}
	}
	if cfg.Law != nil && len(wrong) == 0 && !laws.Claim(cfg.Law) {
		wrong = append(wrong, errors.New("limiter: the law belongs to another limiter or pool: give each its own"))
	}
	if len(wrong) > 0 {
		for _, o := range mine {
			o.unclaim()
		}
	}
	return wrong
}

// ownable is a signal that at most one limiter can own.
type ownable interface {
	claim() bool
	unclaim()
}

// owned records whether a signal has an owner.
type owned struct{ taken atomic.Bool }

func (o *owned) claim() bool { return o.taken.CompareAndSwap(false, true) }
func (o *owned) unclaim()    { o.taken.Store(false) }

// isNil reports whether v is nil or a nil pointer. A constructor returns a nil
// pointer beside an error that the caller may have ignored.
func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil()
}
