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

// careful wraps a user-defined law. The limiter calls the law under its lock, so a panic would
// leave the lock held and the decision half made. careful keeps the panic until the lock is
// released, and raise panics in a caller of the limiter. The limit stays the law's last one.
// The lock guards all fields except unraised.
type careful struct {
	law       limit.Law
	forgets   limit.Forgetter // the law as a Forgetter, or nil
	lastLimit int
	panics    int
	unraised  atomic.Pointer[spillway.PanicError] // not raised yet
}

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
	return c, c
}

// catch recovers and keeps a panic of the law; each call of the law defers catch.
func (c *careful) catch() {
	if p := recover(); p != nil {
		c.panics++
		c.unraised.CompareAndSwap(nil, &spillway.PanicError{Value: p, Stack: debug.Stack()})
	}
}

func (c *careful) Limit() (n int) {
	n = c.lastLimit
	defer c.catch()
	c.lastLimit = c.law.Limit()
	return c.lastLimit
}

func (c *careful) Admit(at time.Duration, load limit.Load) {
	defer c.catch()
	c.law.Admit(at, load)
}

func (c *careful) Observe(s limit.Sample, load limit.Load) {
	defer c.catch()
	c.law.Observe(s, load)
}

func (c *careful) Forget(class uint8) {
	if c.forgets != nil {
		defer c.catch()
		c.forgets.Forget(class)
	}
}

func (c *careful) Name() (name string) {
	name = fmt.Sprintf("%T", c.law)
	defer c.catch()
	return laws.ReporterOf(c.law).Name()
}

func (c *careful) State() (state string) {
	defer func() {
		if c.panics > 0 {
			state = fmt.Sprintf("it has panicked %d times; %s", c.panics, state)
		}
	}()
	state = "it panics when it is asked what it does"
	defer c.catch()
	return laws.ReporterOf(c.law).State()
}

func (c *careful) Why() (why string) {
	why = "decided by a law that panics when it is asked why"
	defer c.catch()
	return laws.ReporterOf(c.law).Why()
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
