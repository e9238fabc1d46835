package limiter

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
)

// Leak is a permit that was not ended in time. If the oldest leaks all have one Site while
// callers wait, the work of the leaks may wait for a second permit of the same limiter.
type Leak struct {
	Site     string        // where the permit was acquired: "function file:line"
	Age      time.Duration // since the admission
	Priority spillway.Priority
	Kind     string // Request.Kind, if named
}

// callSite is the call stack of an acquisition, resolved to names only in String.
type callSite struct {
	stack [16]uintptr
	n     int
}

// recordSite records the call stack of the acquisition in the slot of p.
func (l *Limiter) recordSite(p Permit) {
	site := new(callSite)
	site.n = runtime.Callers(2, site.stack[:])
	l.lock(l.now())
	p.s.site = site
	l.unlock()
}

const ownFunctions = "github.com/spillway-go/spillway/limiter.(*"

// String names the first frame outside this package's own methods.
func (c *callSite) String() string {
	if c == nil {
		return "unknown"
	}
	frames := runtime.CallersFrames(c.stack[:c.n])
	for {
		f, more := frames.Next()
		if !strings.HasPrefix(f.Function, ownFunctions) || !more {
			return fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line)
		}
	}
}

// leaks returns all overdue permits, oldest first, and counts those that it finds for the first
// time. The caller holds the lock.
func (l *Limiter) leaks(now time.Duration) (all []Leak) {
	if l.leakAfter == 0 {
		return nil
	}
	paused, parked := l.gate.FirstAside()
	for _, w := range [...]*gate.Work{paused, parked, l.gate.Oldest()} {
		for ; w != nil; w = w.Next() {
			if now-w.Start < l.leakAfter {
				continue
			}
			s := w.Owner.(*slot)
			all = append(all, Leak{s.site.String(), now - w.Start, w.Priority, l.gate.NameOf(w)})
			if !s.reported {
				s.reported = true
				l.leaked++
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Leak) int { return cmp.Compare(b.Age, a.Age) })
	return all
}
