package limiter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/internal/laws"
	"github.com/spillway-go/spillway/limit"
)

// relimit publishes the new limit n and adds the change to the log. The caller holds the
// lock.
func (l *Limiter) relimit(n int) {
	d := limit.Decision{At: l.last, From: int(l.limit.Swap(int64(n))), To: n, Why: l.overruledBy()}
	lifted := l.overruled
	l.overruled = d.Why
	switch {
	case d.Why != "":
	case lifted != "":
		d.Why = "no more " + lifted
	default:
		d.Why = laws.ReporterOf(l.law).Why()
	}
	l.log.Add(d)
	if l.observer.LimitChanged != nil {
		l.changes = append(l.changes, d)
	}
}

// describeParked names the kinds of parked work, most first.
func describeParked(by map[string]int) string {
	names := slices.SortedFunc(maps.Keys(by), func(a, b string) int { return cmp.Or(by[b]-by[a], cmp.Compare(a, b)) })
	var text []string
	for i, name := range names {
		switch {
		case i == mostNamed:
			text = append(text, fmt.Sprintf("%d other kinds", len(names)-i))
			return strings.Join(text, ", ") + " are parked"
		case name == "":
			text = append(text, fmt.Sprintf("%d overdue pieces of work", by[name]))
		default:
			text = append(text, fmt.Sprintf("%d of kind %.60s", by[name], name))
		}
	}
	return strings.Join(text, ", ") + " are parked"
}

// mostNamed is how many kinds of parked work State names.
const mostNamed = 3

// nested explains how work may stop although no backend hangs: work holds a permit while
// it waits for another permit of the same limiter.
const nested = "work may wait here for itself, by Do inside Do or by services that call each other in a circle: give each layer a limiter of its own"

// state explains the limit: what keeps the law from learning, what overrules the law, and
// what the law does. The caller holds the lock.
func (l *Limiter) state(now time.Duration, p ProcessorStats) string {
	s := laws.ReporterOf(l.law).State()
	if by := l.overruledBy(); by != "" {
		s = fmt.Sprintf("%s: %d instead of %d; the law: %s", by, l.gate.Limit(), l.law.Limit(), s)
	}
	fixed := laws.Constant(l.law)
	if n, failed := l.gate.WithoutSample(); n > 0 && !fixed {
		if failed {
			s = fmt.Sprintf("no sample in the last %d ends, because work fails; %s", n, s)
		} else {
			s = fmt.Sprintf("no sample in the last %d ends, because work is not ended with Done; %s", n, s)
		}
	}
	// A cut of the limit leaves at most twice the limit in use. If more is in use, a dry run
	// or MaxRefused has admitted work over the limit.
	if n, most := l.gate.InFlight(), l.gate.Limit(); n > 2*most && l.Mode() == Enforce {
		s = fmt.Sprintf("%d slots are in use and %d are allowed; %s", n, most, s)
	} else if n > 2*most {
		s = fmt.Sprintf("%d slots are in use and a limit would allow %d; %s", n, most, s)
	}
	if p.Admitted < 1 {
		s = fmt.Sprintf("processors are short: requests wait %v for one, and %.0f %% are shed; %s", p.Wait.Round(time.Millisecond), 100*(1-p.Admitted), s)
	} else if p.Wait > p.Bound {
		s = fmt.Sprintf("processors are short: requests wait %v for one; %s", p.Wait.Round(time.Millisecond), s)
	}
	_, parked := l.gate.Aside()
	stands, stalled := l.gate.Lost(now), time.Duration(0)
	if oldest := l.gate.Oldest(); oldest != nil {
		stalled = l.gate.StalledFor(now, oldest.Taken())
	}
	if parked > 0 {
		text := describeParked(l.gate.ParkedBy())
		switch trying, passed := l.gate.Trial(); {
		case trying:
			text += ": a trial looks whether others are served beside them"
		case passed && stands == 0 && stalled == 0:
			text += ": others are served beside them"
		}
		s = text + "; " + s
	}
	if stands > 0 {
		s = fmt.Sprintf("%.0f %% of what ended of late was lost: late, given up or refused below; %s", 100*stands, s)
	}
	if stalled > 0 {
		s = fmt.Sprintf("nothing has ended for %v with %d in flight; %s", stalled.Round(time.Second), l.gate.InFlight(), s)
	}
	if (stands > 0 || stalled > 0) && l.gate.Queued() > 0 && parked == 0 {
		s += "; " + nested
	}
	return s
}
