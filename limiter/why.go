package limiter

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// why remembers changes of the limit that are not the law's.
type why struct {
	ruler     string // what overruled the law at the last change; empty: nothing
	decisions []limit.Decision
}

// remembered is how many changes are remembered.
const remembered = 8

// add enters a change. Steps in one direction for one reason are one change.
func (w *why) add(d limit.Decision) {
	if n := len(w.decisions); n > 0 {
		last := &w.decisions[n-1]
		if last.Why == d.Why && last.To == d.From && (last.To > last.From) == (d.To > d.From) {
			last.At, last.To = d.At, d.To
			return
		}
		if n == remembered {
			w.decisions = slices.Delete(w.decisions, 0, 1)
		}
	}
	w.decisions = append(w.decisions, d)
}

// with returns the changes and those of the law, the latest, oldest first.
func (w *why) with(law []limit.Decision) []limit.Decision {
	all := slices.Concat(law, w.decisions)
	slices.SortStableFunc(all, func(a, b limit.Decision) int { return cmp.Compare(a.At, b.At) })
	return all[max(0, len(all)-remembered):]
}

// ruler is what overrules the law now; empty: nothing does.
func (l *Limiter) ruler() string {
	if l.gate.Limit() < l.law.Limit() {
		return "pressed down by " + l.press.By
	}
	return l.law.ruler()
}

// ruler is what overrules the law now; empty: nothing does.
func (g *governed) ruler() string {
	switch {
	case g.now == g.Law.Limit():
		return ""
	case g.rampFor > 0 && g.now == g.ramp:
		return "slow start"
	case g.now == g.high:
		return "upper bound"
	case g.now == g.floor:
		return "estimate of the dry run, which fades"
	}
	return "lower bound"
}

// relimit publishes a new limit. The caller holds the lock.
func (l *Limiter) relimit(n int) {
	d := limit.Decision{At: l.last, From: int(l.limit.Swap(int64(n))), To: n, Why: l.ruler()}
	lifted := l.why.ruler
	l.why.ruler = d.Why
	switch {
	case d.Why != "":
		l.why.add(d)
	case lifted != "":
		d.Why = "no more " + lifted
		l.why.add(d)
	case l.observer != nil && l.observer.LimitChanged != nil:
		d.Why = l.law.State()
		if all := l.law.Decisions(); len(all) > 0 {
			d.Why = all[len(all)-1].Why
		}
	}
	if l.observer != nil && l.observer.LimitChanged != nil {
		l.changes = append(l.changes, d)
	}
}

// state says why the limit is what it is: what keeps anybody from learning, what
// overrules the law, and what the law does. The caller holds the lock.
func (l *Limiter) state(now time.Duration) string {
	s := l.law.State()
	if by := l.ruler(); by != "" {
		s = fmt.Sprintf("%s: %d instead of %d; the law: %s", by, l.gate.Limit(), l.law.Law.Limit(), s)
	}
	if n, failed := l.gate.Unsaid(); n > 0 && l.law.Name() != "fixed" {
		if failed {
			s = fmt.Sprintf("no sample in the last %d ends, because work fails; %s", n, s)
		} else {
			s = fmt.Sprintf("no sample in the last %d ends, because work is not ended with Done; %s", n, s)
		}
	}
	if oldest := l.running.oldest; oldest != nil {
		if d := l.gate.Still(now, oldest.grant.Start); d > 0 {
			s = fmt.Sprintf("nothing has ended for %v with %d in flight; %s", d.Round(time.Second), l.gate.InFlight(), s)
		}
	}
	return s
}
