package limiter

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spillway-go/spillway"
)

// Leak is a permit that was not ended in time. Where the oldest all stand at one Site
// while callers wait, their work may wait for a second permit of the same limiter.
type Leak struct {
	Site     string        // where it was acquired: "function file:line"
	Age      time.Duration // since it was admitted
	Priority spillway.Priority
}

// callSite is the stack of an acquisition, resolved only when it is shown.
type callSite struct {
	stack [16]uintptr
	n     int
}

// mark records where the caller of the limiter stands.
func (l *Limiter) mark(p Permit) {
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

// leaks finds permits that are overdue, the oldest first, and those of them that
// were not reported yet. The caller holds the lock.
func (l *Limiter) leaks(now time.Duration) (all, fresh []Leak) {
	if l.leakAfter == 0 {
		return nil, nil
	}
	for s := l.running.oldest; s != nil && now-s.grant.Start >= l.leakAfter; s = s.next {
		leak := Leak{s.site.String(), now - s.grant.Start, s.grant.Priority}
		all = append(all, leak)
		if !s.reported {
			s.reported = true
			l.leaked++
			fresh = append(fresh, leak)
		}
	}
	return all, fresh
}

// unlockAndReport ends an operation that found leaks. They are reported once, so a
// panic of the observer must not keep them back, nor one of OnLeak.
func (l *Limiter) unlockAndReport(leaks []Leak) {
	defer l.report(leaks)
	l.unlock()
}

func (l *Limiter) report(leaks []Leak) {
	if l.onLeak != nil && len(leaks) > 0 {
		defer l.report(leaks[1:])
		l.onLeak(leaks[0])
	}
}
