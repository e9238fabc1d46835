package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/refusal"
	"github.com/spillway-go/spillway/limit"
)

// Policy decides which calls may run, and when. The zero value is the adaptive
// limiter without configuration.
type Policy struct {
	build func(at *replica) (admitter, error)
	err   error
}

// Settings are fields of limiter.Config with the same names and defaults. Signals, slow start,
// bounds and dry run are not simulated.
type Settings struct {
	QueueSize  int           // most calls that may wait; zero: 16384; negative: no queue
	MaxWait    time.Duration // longest wait; zero: 10 s
	MaxRefused float64       // bound on the share of refusals: other calls are admitted over the limit; zero: none
}

const (
	defaultMaxWait = 10 * time.Second
	defaultQueue   = 16384
)

// Unlimited admits every call at once.
func Unlimited() Policy {
	return Policy{build: func(at *replica) (admitter, error) { return &unlimited{run: at.run}, nil }}
}

// Semaphore admits up to n slots' worth of calls; the others queue until their
// deadline, regardless of priority.
func Semaphore(n int) Policy {
	p := Policy{build: func(at *replica) (admitter, error) { return &semaphore{run: at.run, n: n}, nil }}
	if n < 1 {
		p.err = fmt.Errorf("Semaphore(%d): give it at least 1 slot", n)
	}
	return p
}

// Limiter is the limiter with a law: Limiter(limit.NewAdaptive, Settings{}), or a function that
// returns a custom law. The function is called whenever a replica starts, because a law has state.
func Limiter[L limit.Law](law func() L, settings Settings) Policy {
	var p Policy
	switch {
	case law == nil:
		p.err = fmt.Errorf("Limiter: the law is nil: use for example limit.NewAdaptive")
	case settings.MaxWait < 0:
		p.err = fmt.Errorf("Limiter: MaxWait is %v: it cannot be negative (zero means %v)", settings.MaxWait, defaultMaxWait)
	case !(settings.MaxRefused >= 0 && settings.MaxRefused < 1):
		p.err = fmt.Errorf("Limiter: MaxRefused is %v: use a share from 0 (no bound) to less than 1", settings.MaxRefused)
	}
	p.build = func(at *replica) (admitter, error) {
		l := law()
		// A constructor whose error is ignored may return a nil pointer.
		if v := reflect.ValueOf(l); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return nil, errors.New("sim: Policy: Limiter: the function returned no law")
		}
		g := &gated{run: at.run, maxWait: cmp.Or(settings.MaxWait, defaultMaxWait)}
		if at.run.sc.Retry.Respect {
			g.advice = refusal.NewTable(at.run.sc.Seed + uint64(at.n)<<32)
		}
		g.gate = gate.New(gate.Config{
			Law:        l,
			QueueSize:  max(cmp.Or(settings.QueueSize, defaultQueue), 0),
			MaxWait:    g.maxWait,
			MaxRefused: settings.MaxRefused,
		})
		return g, nil
	}
	return p
}

func (p Policy) check() error { return p.err }

// admitter is a running policy. It calls run.admit and run.refuse.
type admitter interface {
	arrive(c *call) // admits the call, refuses it, or lets it wait by run.wait
	ended(c *call, o limit.Outcome)
	leave(c *call) bool   // the caller left while the call waited; reports whether the call is removed
	overdue(c *call) bool // the call has waited for as long as allowed; reports whether to refuse it
	dispatch()            // admits waiting calls that may run now
	load() (limit, inFlight, queued int)
}

type unlimited struct {
	run *run
	n   int
}

func (u *unlimited) arrive(c *call)               { u.n++; u.run.admit(c) }
func (u *unlimited) ended(*call, limit.Outcome)   { u.n-- }
func (u *unlimited) leave(*call) bool             { return false }
func (u *unlimited) overdue(*call) bool           { return false }
func (u *unlimited) dispatch()                    {}
func (u *unlimited) load() (limit, now, wait int) { return 0, u.n, 0 }

type semaphore struct {
	run     *run
	n, used int
	waiting int
	line    line
	first   *call // taken from line, but still waiting for slots
	gen     uint32
}

func (p *semaphore) arrive(c *call) {
	if p.waiting == 0 && p.fits(c) {
		p.used += c.class.Cost
		p.run.admit(c)
		return
	}
	p.waiting++
	p.line.push(c)
	p.run.wait(c, never)
}

func (p *semaphore) fits(c *call) bool { return c.class.Cost <= p.n-p.used || p.used == 0 }

func (p *semaphore) ended(c *call, _ limit.Outcome) { p.used -= c.class.Cost }

func (p *semaphore) leave(*call) bool { p.waiting--; return true }

func (p *semaphore) overdue(*call) bool { return false }

func (p *semaphore) dispatch() {
	for {
		if p.first == nil || p.first.gen != p.gen {
			if p.first = p.line.pop(); p.first == nil {
				return
			}
			p.gen = p.first.gen
		}
		if !p.fits(p.first) {
			return
		}
		c := p.first
		p.first = nil
		p.waiting--
		p.used += c.class.Cost
		p.run.admit(c)
	}
}

func (p *semaphore) load() (limit, inFlight, queued int) { return p.n, p.used, p.waiting }

const never = time.Duration(math.MaxInt64)
