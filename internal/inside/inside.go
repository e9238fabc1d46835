// Package inside is what package limiter offers to the other packages of the module, and not to
// users. Package limiter, which imports this package, sets the variables.
package inside

import (
	"iter"
	"time"
)

// Of returns the inside of a *limiter.Limiter.
var Of func(lim any) Limiter

// OfKeyed returns the inside of a *limiter.Keyed.
var OfKeyed func(family any) Keyed

// Limiter is the inside of a limiter.
type Limiter interface {
	// Every calls f now and then while the limiter is used: not more often than d, nor than every
	// 100 ms, and soon after d has passed. The calls are made one at a time, without the limiter's
	// lock, on goroutines that acquire or end a permit, which they delay. So a limiter that nobody
	// uses makes no call, and its counts stand still. In mode Off there are no calls either. f must
	// not call Every or stop. After stop has returned, f is not called.
	Every(d time.Duration, f func()) (stop func())
	// Processors tells whether processors are short in the whole process.
	Processors() Processors
	// Pressure tells the effect of the signals.
	Pressure() Pressure
}

// Processors tells whether processors are short in the whole process. See
// limiter.Config.IgnoreProcessors.
type Processors struct {
	Wait     time.Duration // wait of a request for a processor, before any code sees the request
	Bound    time.Duration // wait above which arrivals are shed
	Admitted float64       // share of the arrivals that is not shed for lack of processors
}

// Pressure is the effect of the signals on a limiter.
type Pressure struct {
	Signal string  // name of the highest signal now; empty without signals
	Level  float64 // level of Signal at the last check
	Cap    int     // the limit is pressed down to Cap; zero: no pressure
	By     string  // name of the signal that caused Cap
}

// Keyed is the inside of a family of limiters.
type Keyed interface {
	// Watch returns a sequence of the key and the *limiter.Limiter of every current member, the
	// shared limiter under limiter.Overflow. The function evicted is called for each limiter that
	// leaves the family, one call at a time and without the family's lock: before a loop over the
	// sequence, or by a caller of the family that uses a new key. The evicted limiter has no work,
	// and its counts stay. A later limiter of the same key is another limiter; the pointer
	// distinguishes the two. A nested loop over the same sequence deadlocks. The family has only a
	// weak reference to the sequence, and calls evicted as long as the caller keeps the sequence.
	Watch(evicted func(key string, lim any)) iter.Seq2[string, any]
}
