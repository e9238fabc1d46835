package limiter

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// Config says what a Limiter does. The zero value works.
type Config struct {
	// Name labels this limiter in metrics and reports.
	Name string

	// Law decides how much may run at once. Nil means limit.NewAdaptive, which
	// finds out. The limiter owns the law: one value serves one limiter.
	//
	// A panic of a law of your own goes on, as a *spillway.PanicError with the law's
	// stack, in the next Acquire that admits work, end of a permit or Stats, whose
	// caller need not be the one whose work it was. It costs no slot and leaves the limit
	// as it was, and the law is asked again. Stats().State counts such panics.
	Law limit.Law

	// QueueSize is how many callers may wait. Zero means 16,384: a caller that
	// would wait too long is refused long before, so this only bounds memory.
	// Negative means that no caller waits.
	QueueSize int

	// MaxWait bounds every wait, also where the deadline is later. Zero means 10
	// seconds, for a backend that hangs: work that would wait longer than a short
	// burst takes to pass is refused long before. It cannot be negative. A caller that
	// must not wait uses TryAcquire.
	//
	// Without it, work waits in a burst for at most eight pieces of work one after the
	// other; without a deadline for half as long and at most a second, but 100 ms in any
	// case. Once demand has exceeded the capacity for five times that, it waits for
	// about one piece of work.
	MaxWait time.Duration

	// Mode is Enforce unless said otherwise. It can be changed at any time.
	Mode Mode

	// MaxRefused is the share of arrivals that may be refused for lack of
	// capacity, below 1, over the last ten seconds; beyond it work is admitted over
	// the limit. Zero means
	// that there is no such bound. Work that could not meet its deadline even if it
	// ran at once is refused all the same.
	MaxRefused float64

	// Signals press the limit down for reasons that latency does not show. One
	// value serves one limiter.
	Signals []Signal

	// SlowStart is for a process that starts cold: from the first arrival the
	// limit grows in a straight line over this time, from one slot to what it would
	// be without. Zero means none.
	SlowStart time.Duration

	// LeakAfter finds permits that were never ended: one that is older is
	// reported once, with the place that acquired it. Zero means off, and costs
	// nothing; otherwise every admission records its call stack. Reports are
	// made while the limiter is used, and by Stats.
	LeakAfter time.Duration
	// OnLeak receives the reports; nil means that only Stats shows them.
	OnLeak func(Leak)

	// Observer is told of decisions as they are made; nil costs nothing. It is
	// copied.
	Observer *Observer
}

const (
	defaultMaxWait = 10 * time.Second
	longestWait    = forever / 4 // for ever, and other times can be added to it
	defaultQueue   = 16384
	forever        = time.Duration(math.MaxInt64)
)

// check returns all that is wrong with the configuration.
func (cfg *Config) check() error {
	var wrong []error
	fault := func(format string, args ...any) { wrong = append(wrong, fmt.Errorf("limiter: "+format, args...)) }
	if cfg.Law != nil && isNil(cfg.Law) {
		fault("Law is a nil %T: look at the error of its constructor", cfg.Law)
	}
	if cfg.MaxWait < 0 {
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
	for i, s := range cfg.Signals {
		if isNil(s) {
			fault("signal %d is nil", i)
		} else if g, ok := s.(*gauge); ok && (g.name == "" || g.read == nil || !(g.limit > 0)) {
			fault("signal %d: a gauge needs a name, a function and a limit above zero", i)
		}
	}
	if len(wrong) == 0 {
		wrong = cfg.claim()
	}
	return errors.Join(wrong...)
}

// claim takes the law and the signals for this limiter, and says which have an
// owner. The law comes last, because a claim on it is for ever.
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
	if cfg.Law != nil && len(wrong) == 0 && !limit.Claim(cfg.Law) {
		wrong = append(wrong, errors.New("limiter: the law belongs to another limiter or pool: give each its own"))
	}
	if len(wrong) > 0 {
		for _, o := range mine {
			o.unclaim()
		}
	}
	return wrong
}

// ownable is a signal that knows whether it has an owner.
type ownable interface {
	claim() bool
	unclaim()
}

// owned is an ownable signal's mark.
type owned struct{ taken atomic.Bool }

func (o *owned) claim() bool { return o.taken.CompareAndSwap(false, true) }
func (o *owned) unclaim()    { o.taken.Store(false) }

// isNil reports whether v is nothing, or a nil pointer: what a constructor returns
// beside an error that was not looked at.
func isNil(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil()
}
