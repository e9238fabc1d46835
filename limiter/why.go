package limiter

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/internal/inside"
	"github.com/spillway-go/spillway/internal/laws"
	"github.com/spillway-go/spillway/limit"
)

// relimit publishes the new limit n and adds the change to the log. The caller holds the
// lock.
func (l *Limiter) relimit(n int) {
	l.beginHistory()
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
	if len(names) > mostNamed { // it is no kind in particular
		all := 0
		for _, n := range by {
			all += n
		}
		if 2*by[names[0]] <= all {
			return fmt.Sprintf("%d pieces of work of %d kinds are parked", all, len(names))
		}
	}
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
// what the law does. What matters most comes first. The caller holds the lock.
func (l *Limiter) state(now time.Duration, p inside.Processors) string {
	lost, stalled := l.gate.Lost(now), time.Duration(0)
	if oldest := l.gate.Slowest(); oldest != nil {
		stalled = l.gate.StalledFor(now, oldest.Since())
	}
	parked := l.stateOfParked(lost == 0 && stalled == 0)
	said := []string{"", "", parked, stateOfProcessors(p), l.stateOfSlots(), l.stateOfSamples(), l.stateOfLaw()}
	if stalled > 0 {
		said[0] = fmt.Sprintf("nothing has ended for %v with %d in flight%s", stalled.Round(time.Second), l.gate.InFlight(), l.holder())
	}
	if lost > 0 {
		said[1] = fmt.Sprintf("%.0f %% of what ended of late was lost: late, given up or refused below", 100*lost)
	}
	if (stalled > 0 || lost > 0 && l.gate.RefusedBelow()) && l.gate.Queued() > 0 && parked == "" {
		said = append(said, nested)
	}
	return strings.Join(slices.DeleteFunc(said, func(s string) bool { return s == "" }), "; ")
}

// holder names the kind of work that holds more than half of the slots in use, if kinds have names.
func (l *Limiter) holder() string {
	name, n := l.gate.Holder()
	if name == "" || 2*n <= l.gate.InFlight() {
		return ""
	}
	return fmt.Sprintf(", %d of kind %.60s", n, name)
}

func (l *Limiter) stateOfLaw() string {
	s := laws.ReporterOf(l.law).State()
	if by := l.overruledBy(); by != "" {
		return fmt.Sprintf("%s: %d instead of %d; the law: %s", by, l.gate.Limit(), l.law.Limit(), s)
	}
	return s
}

func (l *Limiter) stateOfSamples() string {
	n, failed := l.gate.WithoutSample()
	switch {
	case n == 0 || laws.Constant(l.law):
		return ""
	case failed:
		return fmt.Sprintf("no sample in the last %d ends, because work fails", n)
	}
	return fmt.Sprintf("no sample in the last %d ends, because work is not ended with Done", n)
}

// stateOfSlots tells of slots over the limit. A cut of the limit leaves at most twice the limit in use. If
// more is in use, a dry run or MaxRefused has admitted work over the limit.
func (l *Limiter) stateOfSlots() string {
	n, most := l.gate.InFlight(), l.gate.Limit()
	switch {
	case n <= 2*most:
		return ""
	case l.Mode() == Enforce:
		return fmt.Sprintf("%d slots are in use and %d are allowed", n, most)
	}
	return fmt.Sprintf("%d slots are in use and a limit would allow %d", n, most)
}

func stateOfProcessors(p inside.Processors) string {
	switch {
	case p.Admitted < 1:
		return fmt.Sprintf("processors are short: requests wait %v for one, and %.0f %% are shed", p.Wait.Round(time.Millisecond), 100*(1-p.Admitted))
	case p.Wait > p.Bound:
		return fmt.Sprintf("processors are short: requests wait %v for one", p.Wait.Round(time.Millisecond))
	}
	return ""
}

// stateOfParked tells of parked work. served is whether other work ends, and is not lost.
func (l *Limiter) stateOfParked(served bool) string {
	if _, parked := l.gate.Aside(); parked == 0 {
		return ""
	}
	text := describeParked(l.gate.ParkedBy())
	switch trying, passed := l.gate.Trial(); {
	case trying:
		text += ": a trial looks whether others are served beside them"
	case passed && served:
		text += ": others are served beside them"
	}
	return text
}
