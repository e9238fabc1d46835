package limiter

import (
	"fmt"
	"reflect"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// careful calls a law of the user's, which is called under the lock of the limiter. A panic that
// went on from there would leave the lock taken and the decision half made. It is kept
// until the lock is free, and raised in a caller of the limiter. The limit stays what the law
// said last. All but broke is guarded by the lock.
type careful struct {
	law     limit.Law
	forgets limit.Forgetter // the law, or nil
	said    int
	panics  int
	broke   atomic.Pointer[spillway.PanicError] // not raised yet
}

// carefully returns the law to use: that of the user, or a careful one around it. The laws of
// package limit call nobody.
func carefully(law limit.Law) (limit.Law, *careful) {
	of := reflect.TypeOf(law)
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.PkgPath() == reflect.TypeFor[limit.Fixed]().PkgPath() {
		return law, nil
	}
	c := &careful{law: law}
	c.forgets, _ = law.(limit.Forgetter)
	return c, c
}

// catch is deferred around each call of the law.
func (c *careful) catch() {
	if p := recover(); p != nil {
		c.panics++
		c.broke.CompareAndSwap(nil, &spillway.PanicError{Value: p, Stack: debug.Stack()})
	}
}

func (c *careful) Limit() (n int) {
	n = c.said
	defer c.catch()
	c.said = c.law.Limit()
	return c.said
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
	return limit.ReporterOf(c.law).Name()
}

func (c *careful) State() (state string) {
	defer func() {
		if c.panics > 0 {
			state = fmt.Sprintf("it has panicked %d times; %s", c.panics, state)
		}
	}()
	state = "it panics when it is asked what it does"
	defer c.catch()
	return limit.ReporterOf(c.law).State()
}

func (c *careful) Why() (why string) {
	why = "decided by a law that panics when it is asked why"
	defer c.catch()
	return limit.ReporterOf(c.law).Why()
}

// raise lets a panic of the law go on, once, in a caller that holds no lock.
func (l *Limiter) raise() {
	if l.careful != nil {
		if p := l.careful.broke.Swap(nil); p != nil {
			panic(p)
		}
	}
}
