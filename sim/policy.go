package sim

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/refusal"
	"github.com/spillway-go/spillway/limit"
)

// Policy decides which calls may run, and when. The zero value is the adaptive
// limiter without configuration.
type Policy struct {
	build func(s *run) (admitter, error)
	err   error
}

// Settings are those of a limiter.Config, with the same defaults. Its signals, slow
// start, bounds and dry run are not simulated.
type Settings struct {
	QueueSize  int           // most waiting calls; zero: 16384; negative: no queue
	MaxWait    time.Duration // longest wait; zero: 10 s
	MaxRefused float64       // most share of refusals; beyond it calls are admitted over the limit; zero: any
}

const (
	defaultMaxWait = 10 * time.Second
	defaultQueue   = 16384
)

// Unlimited admits every call at once.
func Unlimited() Policy {
	return Policy{build: func(s *run) (admitter, error) { return &unlimited{run: s}, nil }}
}

// Semaphore admits up to n slots' worth of calls; the others queue until their
// deadline, regardless of priority.
func Semaphore(n int) Policy {
	p := Policy{build: func(s *run) (admitter, error) { return &semaphore{run: s, n: n}, nil }}
	if n < 1 {
		p.err = fmt.Errorf("Semaphore(%d): give it at least 1 slot", n)
	}
	return p
}

// Limiter is the limiter with a given law: Limiter(limit.NewAdaptive, Settings{}), or
// a function that returns a custom law. The function is called once for each run,
// because a law has state.
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
	p.build = func(s *run) (admitter, error) {
		l := law()
		// A constructor whose error was dropped returns a nil pointer.
		if v := reflect.ValueOf(l); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return nil, errors.New("sim: Policy: Limiter: the function returned no law")
		}
		g := &gated{run: s, maxWait: cmp.Or(settings.MaxWait, defaultMaxWait)}
		if s.sc.Retry.Respect {
			g.advice = refusal.NewTable(s.sc.Seed)
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

// Oracle is a yardstick, not a usable policy: it knows at every instant how many
// calls the backend serves at full speed and admits that many, the most important
// first and the oldest of those. It drops calls that would not be done in time.
func Oracle() Policy { return oracleOf(false) }

// OracleNewestFirst is Oracle with the newest of the most important first, which
// is the better order when too much arrives.
func OracleNewestFirst() Policy { return oracleOf(true) }

func oracleOf(newest bool) Policy {
	return Policy{build: func(s *run) (admitter, error) {
		return &oracle{run: s, newest: newest, need: s.sc.mean() * 4 / 3}, nil
	}}
}

func (p Policy) check() error { return p.err }

// admitter is a running policy. It calls run.admit and run.refuse.
type admitter interface {
	arrive(c *call) // admits it, refuses it, or lets it wait by run.wait
	ended(c *call, o limit.Outcome)
	leave(c *call) bool   // its caller left while waiting
	overdue(c *call) bool // it waited as long as allowed
	dispatch()            // admits waiting calls that now may run
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
	first   *call // taken from the queue, and still waiting
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

func (p *semaphore) fits(c *call) bool { return p.used+c.class.Cost <= p.n || p.used == 0 }

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

type oracle struct {
	run     *run
	newest  bool
	need    time.Duration
	n       int
	waiting int
	lines   [limit.Classes]line
}

func (o *oracle) arrive(c *call) {
	o.waiting++
	o.lines[spillway.Critical-c.class.Priority].push(c)
	o.run.wait(c, never)
	o.dispatch()
}

func (o *oracle) ended(*call, limit.Outcome) { o.n-- }

func (o *oracle) leave(*call) bool { o.waiting--; return true }

func (o *oracle) overdue(*call) bool { return false }

func (o *oracle) dispatch() {
	for o.n < o.run.parallel() {
		c := o.next()
		if c == nil {
			return
		}
		o.waiting--
		if c.deadline-o.run.now <= o.need {
			o.run.refuse(c, spillway.DeadlineTooClose, 0)
			continue
		}
		o.n++
		o.run.admit(c)
	}
}

func (o *oracle) next() (c *call) {
	for i := range o.lines {
		if o.newest {
			c = o.lines[i].popLast()
		} else {
			c = o.lines[i].pop()
		}
		if c != nil {
			break
		}
	}
	return c
}

func (o *oracle) load() (limit, inFlight, queued int) { return o.run.parallel(), o.n, o.waiting }

// gated is the limiter without its shell: the same gate, in virtual time.
type gated struct {
	run     *run
	gate    *gate.Gate
	maxWait time.Duration
	advice  *refusal.Table // nil: callers ignore it
}

func (p *gated) arrive(c *call) {
	c.waiter = gate.Waiter{Owner: c}
	d := p.gate.Arrive(p.run.now, gate.Arrival{Cost: c.class.Cost, Priority: c.class.Priority, Deadline: c.deadline}, &c.waiter)
	if d.Preempted != nil {
		p.refuse(d.Preempted.Owner.(*call), spillway.Preempted)
	}
	switch d.Verdict {
	case gate.Admit:
		p.admit(c)
	case gate.Wait:
		p.run.wait(c, p.run.now+p.maxWait)
	case gate.Reject:
		p.refuse(c, d.Reason)
	}
}

func (p *gated) admit(c *call) {
	c.seq = p.gate.Seq()
	p.run.admit(c)
}

func (p *gated) refuse(c *call, reason spillway.Reason) {
	var after time.Duration
	if p.advice != nil {
		after = p.advice.For(reason, p.gate.RetryAfter(c.class.Priority)).RetryAfter
	}
	p.run.refuse(c, reason, after)
}

func (p *gated) ended(c *call, o limit.Outcome) {
	p.gate.End(p.run.now, gate.Grant{Seq: c.seq, Start: c.started, Deadline: c.deadline, Cost: c.class.Cost, Priority: c.class.Priority}, o)
}

func (p *gated) leave(c *call) bool { return p.gate.Leave(&c.waiter) }

func (p *gated) overdue(c *call) bool { return p.gate.Expire(&c.waiter) }

func (p *gated) dispatch() {
	for {
		w, granted := p.gate.Next(p.run.now)
		switch {
		case w == nil:
			return
		case granted:
			p.gate.Taken(w, p.run.now-w.Since())
			p.admit(w.Owner.(*call))
		default:
			p.refuse(w.Owner.(*call), spillway.DeadlineTooClose)
		}
	}
}

func (p *gated) load() (limit, inFlight, queued int) {
	return p.gate.Limit(), p.gate.InFlight(), p.gate.Queued()
}

const never = time.Duration(math.MaxInt64)
