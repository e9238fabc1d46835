package limiter

import (
	"fmt"
	"reflect"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/laws"
	"github.com/spillway-go/spillway/limit"
)

// careful wraps a user-defined law, whose calls may panic or call runtime.Goexit. The gate talks to careful,
// which keeps what the law is to be told. At the end of an operation, when all is accounted for, consult tells
// the law. The limit stays the law's last one until then, and if the law breaks. careful keeps a panic until
// the lock is released, and raise panics in a caller of the limiter. The lock guards all fields except unraised.
type careful struct {
	law       limit.Law
	forgets   limit.Forgetter // the law as a Forgetter, or nil
	news      []news          // not told yet
	due       bool            // the law is to be asked for its limit
	lastLimit int
	why       string // the law's reason for lastLimit
	name      string
	state     string
	panics    int
	exits     int                                 // calls of runtime.Goexit
	unraised  atomic.Pointer[spillway.PanicError] // not raised yet
}

// news is what a law is told of one piece of work or class.
type news struct {
	about  about
	at     time.Duration
	class  uint8
	sample limit.Sample
	load   limit.Load
}

// mostNews is how much room for news is kept. After a burst more is freed.
const mostNews = 64

type about uint8

const (
	admission about = iota
	end
	oldClass
)

// carefully returns the law to use: the law itself if its type is from package limit, else a
// careful wrapper. The laws of package limit call no user code.
func carefully(law limit.Law) (limit.Law, *careful) {
	of := reflect.TypeOf(law)
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.PkgPath() == reflect.TypeFor[limit.Law]().PkgPath() {
		return law, nil
	}
	c := &careful{law: law}
	c.forgets, _ = law.(limit.Forgetter)
	c.ask()
	return c, c
}

// catch recovers and keeps a panic of the law; each call of the law defers catch.
func (c *careful) catch() {
	if p := recover(); p != nil {
		c.panics++
		c.unraised.CompareAndSwap(nil, &spillway.PanicError{Value: p, Stack: debug.Stack()})
	}
}

// Limit returns the law's last limit. The law is asked at the end of the operation.
func (c *careful) Limit() (n int) {
	c.due = true
	return c.lastLimit
}

func (c *careful) Admit(at time.Duration, load limit.Load) {
	c.news, c.due = append(c.news, news{about: admission, at: at, load: load}), true
}

func (c *careful) Observe(s limit.Sample, load limit.Load) {
	c.news, c.due = append(c.news, news{about: end, sample: s, load: load}), true
}

func (c *careful) Forget(class uint8) {
	if c.forgets != nil {
		c.news, c.due = append(c.news, news{about: oldClass, class: class}), true
	}
}

func (c *careful) Name() string  { return c.name }
func (c *careful) State() string { return c.state }
func (c *careful) Why() string   { return c.why }

// hear tells the law the news, and asks for its limit.
func (c *careful) hear() {
	c.due = false
	for i := range c.news {
		c.tell(&c.news[i])
	}
	if c.news = c.news[:0]; cap(c.news) > mostNews {
		c.news = nil
	}
	c.ask()
}

func (c *careful) tell(n *news) {
	defer c.catch()
	switch n.about {
	case admission:
		c.law.Admit(n.at, n.load)
	case end:
		c.law.Observe(n.sample, n.load)
	case oldClass:
		c.forgets.Forget(n.class)
	}
}

// ask asks the law for its limit, and for the reason if the limit has changed.
func (c *careful) ask() {
	defer c.catch()
	if n := c.law.Limit(); n != c.lastLimit {
		c.lastLimit, c.why = n, "decided by a law that breaks when it is asked why"
		c.why = laws.ReporterOf(c.law).Why()
	}
}

// describe asks the law for its name and its state.
func (c *careful) describe() {
	c.name, c.state = fmt.Sprintf("%T", c.law), "it breaks when it is asked what it does"
	func() {
		defer c.catch()
		c.name = laws.ReporterOf(c.law).Name()
	}()
	func() {
		defer c.catch()
		c.state = laws.ReporterOf(c.law).State()
	}()
	if c.exits > 0 {
		c.state = fmt.Sprintf("it has called runtime.Goexit %d times; %s", c.exits, c.state)
	}
	if c.panics > 0 {
		c.state = fmt.Sprintf("it has panicked %d times; %s", c.panics, c.state)
	}
}

// consult tells a user-defined law what has happened, and starts waiters if its limit has risen. Whoever is about to
// release the lock calls consult.
func (l *Limiter) consult() {
	if !l.careful.due {
		return
	}
	returned := false
	defer func() {
		if !returned {
			l.breakOff()
		}
	}()
	for l.careful.due {
		l.careful.hear()
		l.gate.LawSays(l.careful.lastLimit)
		if l.gate.Queued() > 0 || l.stale() {
			l.grant(l.last)
		}
	}
	returned = true
}

// describeLaw asks a user-defined law for its name and its state. The caller holds the lock, with all accounted
// for.
func (l *Limiter) describeLaw() {
	if l.careful == nil {
		return
	}
	returned := false
	defer func() {
		if !returned {
			l.breakOff()
		}
	}()
	l.careful.describe()
	returned = true
}

// breakOff ends an operation whose law has called runtime.Goexit. Nothing stops the end of the goroutine, so breakOff
// releases the lock in place of the code that will not run, and wakes the callers whose wait has ended. The law does
// not hear the rest of the news, and the next operation reports the changes.
func (l *Limiter) breakOff() {
	c := l.careful
	c.exits++
	c.news, c.due = c.news[:0], false
	l.grant(l.last)
	for l.free() {
	}
}

// raise panics with the kept panic of the law, once. The caller holds no lock.
func (l *Limiter) raise() {
	if l.careful != nil {
		l.careful.raise()
	}
}

func (c *careful) raise() {
	if p := c.unraised.Swap(nil); p != nil {
		panic(p)
	}
}
