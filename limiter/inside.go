package limiter

import (
	"iter"
	"time"

	"github.com/spillway-go/spillway/internal/inside"
)

func init() {
	inside.Of = func(lim any) inside.Limiter { return (*insideLimiter)(lim.(*Limiter)) }
	inside.OfKeyed = func(family any) inside.Keyed { return (*insideKeyed)(family.(*Keyed)) }
}

// insideLimiter has the methods of a limiter that users do not see.
type insideLimiter Limiter

func (l *insideLimiter) Every(d time.Duration, f func()) (stop func()) {
	return (*Limiter)(l).every(d, f)
}
func (l *insideLimiter) Processors() inside.Processors { return l.door.stats() }
func (l *insideLimiter) Pressure() inside.Pressure     { return (*Limiter)(l).pressure() }

// insideKeyed has the methods of a family that users do not see.
type insideKeyed Keyed

func (k *insideKeyed) Watch(evicted func(string, any)) iter.Seq2[string, any] {
	w := (*Keyed)(k).watch(func(key string, l *Limiter) { evicted(key, l) })
	return func(yield func(string, any) bool) {
		for key, l := range w.all() {
			if !yield(key, l) {
				return
			}
		}
	}
}
