package capacity

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spillway-go/spillway/load/numbers"
)

// evidence is what the doubts are about.
type evidence struct {
	slo   SLO
	knee  *rung    // nil: there is none
	quiet *Point   // at which little waits
	broke []*Point // at rates that broke the SLO
	bound time.Duration
}

// doubts names the assumptions behind a knee that do not hold here.
func (s *Search) doubts(low, high *rung) (out []string) {
	if high == nil {
		return nil
	}
	e := evidence{slo: s.SLO, knee: low, quiet: calm(s.rungs, low), bound: time.Second}
	if bound, ok := s.SLO.strictest(); ok {
		e.bound = bound
	}
	for _, r := range s.rungs {
		for i := range r.points {
			if p := &r.points[i]; r.broken() && len(p.Broken) > 0 {
				e.broke = append(e.broke, p)
			}
		}
	}
	for _, doubt := range []func(evidence) string{rateLimit, notByLoad, listenQueue, unboundedQueue} {
		if said := doubt(e); said != "" {
			out = append(out, said)
		}
	}
	if said := degradation(e); said != "" && s.ceiling == "" {
		out = append(out, said)
	}
	if s.slow > 0 {
		out = append(out, fmt.Sprintf("After %s its latency was not back within %v at a low rate, so what was measured next may be worse than it is.", perSecond(s.slow), settles*settleFor))
	}
	return out
}

// calm is the point at which least waits: of those that kept the SLO at up to 60 % of the
// knee the fastest, so that one that the machine disturbed does not count; or the lowest
// rate. A few answers say little, so they count only if there are no more.
func calm(rungs []*rung, knee *rung) *Point {
	var found *Point
	for _, r := range rungs {
		if knee == nil || r.rate > .6*knee.rate {
			break
		}
		for i := range r.points {
			p := &r.points[i]
			if len(p.Broken) == 0 && (found == nil || found.OK < few || p.OK >= few && p.Latency.Mean < found.Latency.Mean) {
				found = p
			}
		}
	}
	if found == nil {
		return rungs[0].last()
	}
	return found
}

// few answers are no measure of a mean.
const few = 50

// those are the points that broke the SLO, had good answers, and are so.
func (e evidence) those(so func(l, quiet *Latency, p *Point) bool) (all []*Point) {
	for _, p := range e.broke {
		if p.Latency != nil && e.quiet.Latency != nil && so(p.Latency, e.quiet.Latency, p) {
			all = append(all, p)
		}
	}
	return all
}

// rateLimit finds refusals that do not come from slowness.
func rateLimit(e evidence) string {
	slack := e.bound.Seconds() * 1000 / 10 // of latencies that are alike
	refused := e.those(func(l, quiet *Latency, p *Point) bool {
		return beyondChance(p.Rejected, p.answers(), e.slo.Rejected) && l.P50 <= 1.3*quiet.P50+slack/2 && l.P90 <= 1.5*quiet.P90+slack
	})
	switch {
	case 2*len(refused) < len(e.broke):
		return ""
	case e.knee == nil:
		return "It answers 429 or 503 at every rate, and the rest as fast as ever: that looks like a rate limit that allows no two requests close to each other, not a capacity."
	}
	most := slices.MaxFunc(refused, func(a, b *Point) int { return cmp.Compare(a.Goodput, b.Goodput) })
	limit := most.Goodput
	if e.knee.rate > .85*limit { // what is more than the knee may be a burst that is let through
		limit = e.knee.rate
	}
	or := ""
	if atOnce := limit * most.Latency.Mean / 1000; atOnce > 1.5 {
		or = fmt.Sprintf(", or one of %s requests at once (%s × %s)", numbers.Format(atOnce), perSecond(limit), millis(most.Latency.Mean))
	}
	return fmt.Sprintf("It answers 429 or 503 above %s whatever its latency, which is the same as at %s: that looks like a rate limit at %s%s, not a capacity.",
		perSecond(limit), perSecond(e.quiet.Rate), perSecond(limit), or)
}

// notByLoad finds an SLO that is broken by what is there without load.
func notByLoad(e evidence) string {
	flat := e.those(func(l, quiet *Latency, p *Point) bool { return l.Mean <= 1.1*quiet.Mean && !p.refused(e.slo) })
	if e.knee == nil || len(flat) < len(e.broke) {
		return ""
	}
	return "The mean latency does not rise with the load: what breaks the SLO is there without load, too, and seen as soon as there are enough requests."
}

// listenQueue finds connections that had to be asked for again, which takes a second.
func listenQueue(e evidence) string {
	again := e.those(func(l, quiet *Latency, p *Point) bool {
		return l.P50 <= 3*quiet.P50 && l.P99 >= 1000 && quiet.P99 < 500 && p.Late == ""
	})
	if e.knee == nil || len(again) == 0 {
		return ""
	}
	p := again[0]
	return fmt.Sprintf("Most answers at %s are about as fast as with little load (p50 %s) and some take a second or more (p99 %s): so long a system waits before it asks again for a connection for which the service's listen queue had no room. That looks like a limit of this queue, not of the work.",
		perSecond(p.Rate), millis(p.Latency.P50), millis(p.Latency.P99))
}

// unboundedQueue finds requests in flight that grow as long as the load lasts. If another point saw
// refusals, the queue has a bound, and the requests in flight grew toward it.
func unboundedQueue(e evidence) string {
	if slices.ContainsFunc(e.broke, func(p *Point) bool { return beyondChance(p.Rejected, p.answers(), e.slo.Rejected) }) {
		return ""
	}
	grow := e.those(func(_, _ *Latency, p *Point) bool {
		rise := p.InFlight[3] - p.InFlight[1]
		return p.Rejected == 0 && rise > p.Rate*p.Seconds/2*.02 && p.InFlight[3] > 1.5*p.InFlight[1] && p.InFlight[3] > 1.2*p.InFlight[2]
	})
	if len(grow) == 0 {
		return ""
	}
	p := grow[len(grow)-1]
	return fmt.Sprintf("Latency rises with the length of the run: a queue without bound. At %s nothing was refused, and in %.1f s the requests in flight grew from %.0f to %.0f.",
		perSecond(p.Rate), p.Seconds, p.InFlight[1], p.InFlight[3])
}

// degradation finds a service that does less when more is asked of it.
func degradation(e evidence) string {
	worst := slices.MinFunc(e.broke, func(a, b *Point) int { return cmp.Compare(a.Goodput, b.Goodput) })
	if e.knee == nil || worst.Goodput >= .8*e.knee.last().Goodput {
		return ""
	}
	return fmt.Sprintf("Past the knee it does less: %s at an offered %s, where it does %s at the knee. A burst above the knee costs more than the burst.",
		perSecond(worst.Goodput), perSecond(worst.Rate), perSecond(e.knee.last().Goodput))
}
