package gate

import (
	"math"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// demand measures the arrivals of each level and the refusals.
type demand struct {
	*lately
	count         [levels]float64 // slots asked for since at
	offered       float64         // arrivals since at
	refusals      float64         // refusals since at
	leaseRefusals float64         // refusals since at for Budget
	lost          float64         // since at: callers that left the queue, and work lost while the limit was exceeded
	began, at     time.Duration
	seen          bool
}

const (
	demandWindow = 100 * time.Millisecond
	demandFast   = 300 * time.Millisecond
	demandSlow   = 1500 * time.Millisecond
	demandLong   = 10 * time.Second
	demandSettle = 500 * time.Millisecond
	// The rates few and many cover at least the time that ten and forty pieces of work take: two
	// simultaneous arrivals are no trend.
	fewPieces, manyPieces = 10, 40
	mostPieces            = time.Hour // upper bound of the time that few and many cover
)

// due reports whether roll has anything to do.
func (d *demand) due(now time.Duration) bool { return now-d.at >= demandWindow || !d.seen }

// roll updates the rates once per window, and returns the time since the last update, or zero. part
// is the service time of a piece of work over the number of slots, in nanoseconds.
func (d *demand) roll(now time.Duration, part float64) (passed time.Duration) {
	if !d.seen {
		d.seen, d.began, d.at = true, now, now
	}
	if now-d.at < demandWindow {
		return 0
	}
	passed = now - d.at
	if d.offered > 0 {
		asked := 0.0
		for _, n := range d.count {
			asked += n
		}
		d.cost.add(asked/d.offered, 1-math.Pow(1-1/serviceSpan, d.offered))
	}
	span := func(shortest time.Duration, pieces float64) time.Duration {
		return max(shortest, time.Duration(min(pieces*part*max(d.cost.mean, 1), float64(mostPieces))))
	}
	d.settles = span(demandSettle, fewPieces)
	all := max(now-d.began, demandWindow) // at first a mean covers all the time since began
	weight := func(span time.Duration) float64 { return 1 - math.Exp(-passed.Seconds()/span.Seconds()) }
	fast, long := weight(demandFast), weight(min(demandLong, all))
	few, many := weight(min(span(demandFast, fewPieces), max(all, demandFast))), weight(min(span(demandSlow, manyPieces), all))
	for i, n := range d.count {
		rate := n / passed.Seconds()
		d.fast[i] += fast * (rate - d.fast[i])
		d.long[i] += long * (rate - d.long[i])
		d.few[i] += few * (rate - d.few[i])
		d.many[i] += many * (rate - d.many[i])
	}
	if d.offered > 0 {
		d.refusedShare += long * ((d.refusals-d.leaseRefusals)/d.offered - d.refusedShare)
		d.vainShare += weight(min(demandSlow, all)) * (min((d.refusals+d.lost)/d.offered, 1) - d.vainShare)
	}
	d.count, d.offered, d.refusals, d.leaseRefusals, d.lost, d.at = [levels]float64{}, 0, 0, 0, 0, now
	return passed
}

// arrive counts n arrivals that ask for slots.
func (d *demand) arrive(lv int, slots, n float64) {
	d.count[lv] += slots
	d.offered += n
}

// refuse counts n refusals.
func (d *demand) refuse(n float64, reason spillway.Reason) {
	d.refusals += n
	if reason == spillway.ReasonBudget {
		d.leaseRefusals += n
	}
}

// share is the smoothed share of refusals, including the current window. Refusals for lack of a
// lease do not count.
func (d *demand) share() float64 {
	if d.offered == 0 {
		return d.refusedShare
	}
	return d.refusedShare + float64(demandWindow)/float64(demandLong)*((d.refusals-d.leaseRefusals)/d.offered-d.refusedShare)
}

func (d *demand) settled() bool { return d.at-d.began >= d.settles }

// service measures how long work holds its slots, in nanoseconds. Every End of work that holds
// slots counts, failures included.
type service struct {
	occupancy
	last time.Duration // when work last ended
	*lately
	kinds    kinds
	lost     average       // share of the ends that were lost: see Gate.Lost
	lossAt   time.Duration // when an end last counted for lost
	below    average       // share of the lost work that was refused further down
	noSample int           // consecutive ends that told of no sample
	failed   int           // failures among the ends in noSample
}

// occupancy is what work takes of the slots: how long work holds a slot, and its part of the
// capacity. The part is the holding time over the number of slots, or over the slots in use if more.
// Once there are serviceKnown values, only work that started within the limit counts for the part:
// other work takes longer because too much runs.
type occupancy struct {
	average
	part average
}

// enter adds how long work held its slot, and its part of the capacity. within is whether the work
// started within the limit.
func (c *occupancy) enter(elapsed, part, weight float64, within bool) {
	c.add(elapsed, weight)
	if within || c.part.n < serviceKnown {
		c.part.add(part, weight)
	}
}

const (
	serviceSpan   = 100.0 // ends behind a mean, at most
	serviceMemory = time.Second
	tailMeans     = 8 // for most work the 95 % quantile is below this many means; a lognormal has at most 3.9
	serviceKnown  = 5 // values before a mean is used
)

// average is the mean of the latest values.
type average struct{ mean, n float64 }

// add enters a value. weight is the share of the value in the mean; it is larger while there are
// few values.
func (a *average) add(x, weight float64) {
	if a.n < serviceSpan {
		a.n++
		weight = max(weight, 1/a.n)
	}
	a.mean += weight * (x - a.mean)
}

// meanOr is the mean, or the mean of other while there are too few values.
func (a *average) meanOr(other average) float64 {
	if a.n < serviceKnown {
		return other.mean
	}
	return a.mean
}

func (s *service) known() bool { return s.n > 0 }

// end records how long work of a kind held its slot, and its part of the capacity.
func (s *service) end(now time.Duration, k *kind, elapsed, part float64, within bool, o limit.Outcome) {
	weight := weightOf(now - s.last)
	s.last = now
	s.enter(elapsed, part, weight, within)
	s.loss(now, o, weight)
	if now-k.last >= evidenceLasts && !k.recent(now) { // outdated evidence is dropped
		*k = kind{level: k.level, named: k.named, name: k.name, tally: k.tally, present: k.present, has: k.has, times: k.times, usual: k.usual, parked: k.parked, fresh: k.fresh, arrivalShare: k.arrivalShare, stay: k.stay, doubted: k.doubted, probed: k.probed}
	}
	weight = weightOf(now - k.last)
	k.last = now
	k.enter(elapsed, part, weight, within)
	k.quantiles(elapsed, o, min(5*weight, 0.25))
}

// lost reports whether work ran into its deadline, was given up by its caller or was refused by the
// backend.
func lost(o limit.Outcome) bool {
	return o == limit.Deadline || o == limit.Canceled || o == limit.Overload
}

// outcome counts an end by its outcome. Work that ended aside, or whose client took the time,
// is no sample either, but not by what it told.
func (s *service) outcome(o limit.Outcome) {
	switch o {
	case limit.Success, limit.Deadline, limit.Overload:
		s.noSample, s.failed = 0, 0
	case limit.Canceled: // no sample and no failure
	case limit.Failed:
		s.noSample, s.failed = s.noSample+1, s.failed+1
	case limit.Unknown:
		s.noSample++
	}
}

// loss counts an end for the share of lost work.
func (s *service) loss(now time.Duration, o limit.Outcome, weight float64) {
	s.lossAt = now
	switch {
	case o == limit.Success, o == limit.Failed:
		s.lost.add(0, weight)
	case lost(o):
		s.lost.add(1, weight)
		below := 0.0
		if o == limit.Overload {
			below = 1
		}
		s.below.add(below, weight)
	}
}

// window updates the means with the arrivals since the last window. Each kind counts by its
// arrivals, with the times of its latest ends: work that is refused must not drop out of the means.
func (s *service) window() {
	var by [levels + 1]arrivals
	for i := range s.kinds.list {
		if k := &s.kinds.list[i]; k.fresh > 0 && k.n > 0 {
			by[k.level].add(k)
			by[levels].add(k)
		}
	}
	for lv := range by {
		if a := &by[lv]; a.n > 0 {
			s.levels[lv].add(a.hold/a.n, a.weight())
			s.levels[lv].part.add(a.part/a.n, a.weight())
		}
	}
	if all := &by[levels]; all.n > 0 {
		s.high.add(all.high/all.n, all.weight())
	}
	s.kinds.window()
}

// arrivals sums the known occupancies of n arrivals, by their kinds.
type arrivals struct{ n, hold, part, high float64 }

func (a *arrivals) add(k *kind) {
	a.n += k.fresh
	a.hold += k.fresh * k.mean
	a.part += k.fresh * k.part.mean
	a.high += k.fresh * k.high
}

// weight is the weight of n arrivals among the latest hundred.
func (a *arrivals) weight() float64 { return 1 - math.Pow(1-1/serviceSpan, a.n) }

// weightOf is the weight of an end, with passed as the time since the previous end. A mean covers
// the last hundred ends, or the ends within serviceMemory if they are fewer: slow ends from before
// a change of the limit must not count for long.
func weightOf(passed time.Duration) float64 {
	if passed <= serviceMemory/serviceSpan { // the result of weightOfSeldom, without the exponential
		return 1 / serviceSpan
	}
	return weightOfSeldom(passed)
}

func weightOfSeldom(passed time.Duration) float64 {
	return max(1/serviceSpan, 1-math.Exp(-passed.Seconds()/serviceMemory.Seconds()))
}

// quantiles moves low and high by stochastic approximation, in steps of the mean. Work that a
// deadline or its caller has ended would have taken longer, by an unknown time. Such work can only
// raise high.
func (k *kind) quantiles(elapsed float64, o limit.Outcome, rate float64) {
	const tail = 0.05
	// A high of many means is left over from before the mean fell, or the tail is heavy. In both
	// cases steps of the mean would take too long.
	high, step := k.high, k.mean
	if heavy := high - tailMeans*k.mean; heavy > step { // cheaper than max
		step = heavy
	}
	switch step *= rate; {
	case elapsed > high && high > 0:
		high += (1 - tail) * step
	case o == limit.Deadline || o == limit.Canceled:
	case high == 0:
		k.low, high = elapsed/2, 1.5*elapsed
	default:
		if high -= tail * step; high < elapsed {
			high = elapsed
		}
	}
	// At most one in twenty takes more than twenty times the mean (Markov). After the end of a
	// hang, the steps alone would take too long.
	if most := k.mean / tail; high > most {
		high = most
	}
	k.high = high
	switch {
	case o != limit.Success && (elapsed < k.low || o != limit.Deadline && o != limit.Canceled): // a fast failure says nothing about how fast work can be done
	case elapsed < k.low:
		k.low = max(k.low-rate*(1-tail)*k.mean, elapsed/2)
	default:
		k.low += rate * tail * k.mean
	}
}

// typical is the mean service time of arriving work.
func (s *service) typical() float64 {
	if s.levels[levels].n == 0 {
		return s.mean
	}
	return s.levels[levels].mean
}

// upper is the time within which nearly all arriving work ends.
func (s *service) upper() float64 {
	if s.high.n == 0 {
		return s.kinds.longest()
	}
	return s.high.mean
}

// hold is how long work of a level holds a slot.
func (s *service) hold(lv int) float64 { return s.levels[lv].meanOr(s.average) }

// holdOf is how long work of a kind holds a slot.
func (s *service) holdOf(lv int, kind uint8) float64 {
	return s.kinds.list[kind].meanOr(average{mean: s.hold(lv)})
}

// partOf is the mean part of the capacity of a piece of work of a level: see occupancy.
func (s *service) partOf(lv int) float64 { return s.levels[lv].part.meanOr(s.part) }
