package metrics

import (
	"maps"
	"slices"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

const (
	requests = iota
	queued
	active
	long
	aside
	slots
	demand
	inQueue
	duration
	byKind
	activeByKind
	byPriority
	queuedByPriority
	mode
	wouldReject
	wouldRejectByPriority
	estimateUnsafe
	stalled
	oldest
	overdue
	leaked
)

// limiterMetrics describe a limiter or a family. The label key is empty except for members of a
// family.
var limiterMetrics = []Metric{
	requests:         {"spillway.requests", Counter, "{request}", "Requests decided, by result: admitted, cancelled, or the reason of a rejection. Offered requests are their sum, and those queued.", []string{"key", "result"}},
	queued:           {"spillway.queued_requests", UpDownCounter, "{request}", "Requests that wait to be admitted.", []string{"key"}},
	active:           {"spillway.active_requests", UpDownCounter, "{slot}", "Slots in use.", []string{"key"}},
	long:             {"spillway.long_requests", UpDownCounter, "{request}", "Long work that runs, such as streams; it holds no slot.", []string{"key"}},
	aside:            {"spillway.aside_requests", UpDownCounter, "{request}", "Admitted work that runs without its slots, by why: paused, for its client takes the time, or parked, for others are served beside it in their usual time.", []string{"key", "why"}},
	slots:            {"spillway.limit", UpDownCounter, "{slot}", "Slots that may be in use at one time.", []string{"key"}},
	demand:           {"spillway.demand", Gauge, "", "Work offered in the last seconds over what the limit allows; above 1, more comes than can be served. Scale by this: shedding keeps the processors calm.", []string{"key"}},
	inQueue:          {"spillway.request.time_in_queue", Histogram, "s", "How long admitted requests waited.", []string{"key"}},
	duration:         {"spillway.request.duration", Histogram, "s", "How long finished requests took, by kind, without the wait and without long work.", []string{"key", "kind"}},
	byKind:           {"spillway.kind.requests", Counter, "{request}", "Requests that have ended, by kind and outcome: ok, failed, late (ended by its deadline), left (by its caller), refused_below, unknown (only released), or rejected (never begun).", []string{"key", "kind", "outcome"}},
	activeByKind:     {"spillway.kind.active_requests", UpDownCounter, "{slot}", "Slots in use, by kind.", []string{"key", "kind"}},
	byPriority:       {"spillway.priority.requests", Counter, "{request}", "Requests decided, by priority and result: admitted, cancelled or rejected.", []string{"key", "priority", "result"}},
	queuedByPriority: {"spillway.priority.queued_requests", UpDownCounter, "{request}", "Requests that wait to be admitted, by priority.", []string{"key", "priority"}},

	mode:                  {"spillway.mode", UpDownCounter, "{limiter}", "Limiters by mode: 1 at the mode of a limiter, 0 at the others.", []string{"key", "mode"}},
	wouldReject:           {"spillway.would_reject", Counter, "{request}", "Admitted requests that a dry run would have refused, by reason.", []string{"key", "reason"}},
	wouldRejectByPriority: {"spillway.priority.would_reject", Counter, "{request}", "Admitted requests that a dry run would have refused, by priority.", []string{"key", "priority"}},
	estimateUnsafe:        {"spillway.estimate_unsafe", UpDownCounter, "{limiter}", "Limiters in a dry run whose estimate must not be trusted: the backend gets slower with more work at once, became slower, or was only seen overloaded.", []string{"key"}},

	stalled: {"spillway.stalled", UpDownCounter, "{limiter}", "Limiters whose admitted work has not ended for long: the backend hangs.", []string{"key"}},
	oldest:  {"spillway.oldest_active_request", Gauge, "s", "How long the oldest work in flight has run; 0 when none is.", []string{"key"}},
	overdue: {"spillway.overdue_permits", UpDownCounter, "{permit}", "Permits that have not ended and are older than limiter.Config.LeakAfter.", []string{"key"}},
	leaked:  {"spillway.leaked_permits", Counter, "{permit}", "Permits that were reported as never ended (limiter.Config.LeakAfter); some may have ended late.", []string{"key"}},
}

var modes = []limiter.Mode{limiter.Enforce, limiter.DryRun, limiter.Off}

// Limiter returns a limiter as metrics.
func Limiter(l *limiter.Limiter) *Source {
	return &Source{
		kind: "limiter", name: clean(l.Name()), metrics: limiterMetrics,
		read: func() []Sample {
			s := l.Stats()
			return limiterSamples("", s, s.ByKind)
		},
	}
}

// outcomes are the words for how work ended.
var outcomes = [...]string{
	limit.Success: "ok", limit.Failed: "failed", limit.Deadline: "late", limit.Canceled: "left", limit.Overload: "refused_below", limit.Unknown: "unknown",
}

// allKinds is the work of all kinds as one, for a family: kinds would multiply the series of its keys.
func allKinds(s limiter.Stats) map[string]limiter.KindStats {
	return map[string]limiter.KindStats{"": {InFlight: s.InFlight, Rejected: s.Rejected, Ended: s.Ended, Service: s.Service}}
}

// byLabel adds up kinds whose labels are equal: a series that is there twice fails a scrape.
func byLabel(kinds map[string]limiter.KindStats) map[string]limiter.KindStats {
	by := make(map[string]limiter.KindStats, len(kinds))
	for name, k := range kinds {
		label := clean(name)
		if other, ok := by[label]; ok {
			k.InFlight, k.Rejected, k.Ended = k.InFlight+other.InFlight, k.Rejected+other.Rejected, maps.Clone(k.Ended)
			for o, n := range other.Ended {
				k.Ended[o] += n
			}
			k.Service = k.Service.Clone()
			k.Service.Merge(other.Service)
		}
		by[label] = k
	}
	return by
}

// limiterSamples returns the values of Stats, and of its kinds. Only the demand cannot be summed over
// limiters.
func limiterSamples(key string, s limiter.Stats, kinds map[string]limiter.KindStats) samples {
	all := gather(80)
	all.put(requests, float64(s.Admitted), key, "admitted")
	all.put(requests, float64(s.Cancelled), key, "cancelled")
	all.reasons(requests, s.RejectedBy, key)
	all.put(queued, float64(s.Queued), key)
	all.put(active, float64(s.InFlight), key)
	all.put(long, float64(s.LongInFlight), key)
	all.put(aside, float64(s.Paused), key, "paused")
	all.put(aside, float64(s.Parked), key, "parked")
	all.put(slots, float64(s.Limit), key)
	all.put(demand, s.Demand, key)
	all.times(inQueue, s.QueueWait, key)
	kinds = byLabel(kinds)
	for _, label := range slices.Sorted(maps.Keys(kinds)) {
		k := kinds[label]
		all.times(duration, k.Service, key, label)
		for o, word := range outcomes {
			all.put(byKind, float64(k.Ended[limit.Outcome(o)]), key, label, word)
		}
		all.put(byKind, float64(k.Rejected), key, label, "rejected")
		all.put(activeByKind, float64(k.InFlight), key, label)
	}
	for p := spillway.Low; p <= spillway.Critical; p++ {
		of, word := s.ByPriority[p], p.String()
		all.put(byPriority, float64(of.Admitted), key, word, "admitted")
		all.put(byPriority, float64(of.Cancelled), key, word, "cancelled")
		all.put(byPriority, float64(of.Rejected), key, word, "rejected")
		all.put(queuedByPriority, float64(of.Queued), key, word)
		all.put(wouldRejectByPriority, float64(of.WouldReject), key, word)
	}
	for _, m := range modes {
		all.put(mode, number(s.Mode == m), key, m.String())
	}
	all.reasons(wouldReject, s.WouldRejectBy, key)
	all.put(estimateUnsafe, number(s.EstimateUnsafe), key)
	all.put(stalled, number(s.Stalled), key)
	all.put(oldest, s.OldestInFlight.Seconds(), key)
	all.put(overdue, float64(len(s.Leaks)), key)
	all.put(leaked, float64(s.Leaked), key)
	return all.samples
}
