package limit

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// falls detects a backend whose throughput falls with concurrency. It counts ends and time per
// octave of concurrency, in periods of fallsPiece. Many missed deadlines in a period have one of
// two causes. If a queue stands before the backend's slots, all work waits equally long, and work
// that ended in time was nearly late. The backend would do well behind a limit, so the period is
// left out. If the backend runs all work at once, short work ends well in time, and the period
// counts.
type falls struct {
	at    octaves       // counts of the present period
	began time.Duration // start of the period
	good  ended         // successes in the period
	late  ended         // missed deadlines in the period
	lost  float64       // work in the period lost to overload or departed callers
	// shared and before are the total time of periods in which much work was late and the rest well
	// in time: shared in this era, before in the era before.
	shared, before time.Duration
	now            octaves
	old            octaves // counts of the era before
}

type octaves [18]octave // indexed by the bit length of the concurrency

// octave is what happened while the concurrency was in one octave.
type octave struct {
	ends, late ended
	span       float64 // nanoseconds
	area       float64 // concurrency times nanoseconds
}

// add adds the ends and the time of o, without the late ones.
func (a *octave) add(o octave) {
	a.ends = ended{a.ends.n + o.ends.n, a.ends.time + o.ends.time}
	a.span, a.area = a.span+o.span, a.area+o.area
}

// burst reports whether the work that ended took far longer than the octave lasted for all work in
// flight. The work then ran in another octave: work that ends in lockstep passes through the octaves
// below in no time.
func (a *octave) burst() bool { return a.ends.time > 2*a.area }

// ended is a number of ends and the total time of the work, in nanoseconds.
type ended struct{ n, time float64 }

const (
	fallsPiece = 100 * time.Millisecond
	// fallsBy is the least fall, as a share of throughput. A smaller fall may come from long work:
	// while long work holds the slots, less work ends and the queue grows.
	fallsBy     = 0.2
	fallsShared = 0.1    // least fall if all work runs at once; a smaller fall may be scatter
	fallsSure   = 2.5    // standard errors, on both sides
	fallsKnown  = 30     // least ends at the lower concurrency, and least expected at the higher
	fallsFew    = 0.1    // share of ends up to which the late or lost ones are few
	fallsWell   = 2. / 3 // share of the mean time of late work below which work is well in time
)

func octaveOf(inFlight int) int { return min(bits.Len(uint(max(inFlight, 0))), len(octaves{})-1) }

// pass enters a time d with inFlight pieces of work in flight.
func (f *falls) pass(now, d time.Duration, inFlight int) {
	at := &f.at[octaveOf(inFlight)]
	at.span, at.area = at.span+float64(d), at.area+float64(d)*float64(inFlight)
	if now-f.began < fallsPiece {
		return
	}
	all := f.good.n + f.late.n + f.lost
	few := f.late.n+f.lost <= fallsFew*all
	well := f.lost <= fallsFew*all && f.good.time*f.late.n < fallsWell*f.late.time*f.good.n
	if well && !few {
		f.shared += now - f.began
	}
	if few || well {
		for i, o := range f.at {
			if few { // if many are late, late work may be half done, or not started
				o.add(octave{ends: o.late})
			}
			f.now[i].add(o)
		}
	}
	f.at, f.began, f.good, f.late, f.lost = octaves{}, now, ended{}, ended{}, 0
}

// end enters the end of work. inFlight is the concurrency before the end.
func (f *falls) end(inFlight int, o Outcome, elapsed float64) {
	switch at := &f.at[octaveOf(inFlight)]; o {
	case Success:
		at.ends = ended{at.ends.n + 1, at.ends.time + elapsed}
		f.good = ended{f.good.n + 1, f.good.time + elapsed}
	case Deadline:
		at.late = ended{at.late.n + 1, at.late.time + elapsed}
		f.late = ended{f.late.n + 1, f.late.time + elapsed}
	case Overload, Canceled:
		f.lost++
	}
}

func (f *falls) age() {
	f.old, f.now = f.now, octaves{}
	f.before, f.shared = f.shared, 0
}

// together reports whether the backend runs all work at once: for more than a second of the two
// eras, much work was late and the rest well in time.
func (f *falls) together() bool { return f.shared+f.before > time.Second }

// worst finds the clearest fall of throughput between two ranges of octaves of concurrency. The
// higher range begins at the octave to and has no end. The lower range is below it and begins at
// from. before and after are the ends per second in the lower and the higher range. If to is 0, no
// clear fall was found.
func (f *falls) worst() (from, to int, before, after float64) {
	var at octaves
	var above struct{ ends, seconds float64 }
	for i := range at {
		at[i].add(f.now[i])
		at[i].add(f.old[i])
		above.ends, above.seconds = above.ends+at[i].ends.n, above.seconds+at[i].span/1e9
	}
	share := 1 - fallsBy
	if f.together() {
		share = 1 - fallsShared
	}
	for i := range at {
		if i > 0 {
			above.ends, above.seconds = above.ends-at[i-1].ends.n, max(above.seconds-at[i-1].span/1e9, 0)
		}
		// Upper bound of the ends, valid for few ends too.
		sure := above.ends + fallsSure*fallsSure/2 + fallsSure*math.Sqrt(above.ends+fallsSure*fallsSure/4)
		var below octave
		for low := i - 1; low >= 0; low-- {
			below.add(at[low])
			ends, seconds := below.ends.n, below.span/1e9
			if ends < fallsKnown || below.burst() {
				continue
			}
			best := (ends - fallsSure*math.Sqrt(ends)) / seconds
			if most := sure / above.seconds; above.seconds*best >= fallsKnown && most < share*best {
				share = most / best
				from, to, before, after = low, i, ends/seconds, above.ends/above.seconds
			}
		}
	}
	return from, to, before, after
}

// Unsafe reports whether the estimate must not be trusted, for one of three reasons. The backend's
// throughput falls with concurrency, so its throughput under a limit is not known. Or the backend
// runs all work at once and was overloaded all the time. Or work has run into its deadlines from
// the start, so nothing is known. State reports the reason.
func (p *passive) Unsafe() bool { return p.unknown() || p.falling() != "" }

// unknown reports whether work has run into its deadlines from the start.
func (p *passive) unknown() bool { return p.last.overloaded && p.unloaded == [Classes]mean{} }

// falling describes the other two reasons of Unsafe; empty if neither holds.
func (p *passive) falling() string {
	from, to, before, after := p.falls.worst()
	switch {
	case to > 0:
		return fmt.Sprintf("; unsafe: the backend gets less done the more runs in it, %.0f/s with about %d in flight and %.0f/s from %d on",
			before, 3<<from>>2, after, 1<<to>>1)
	case p.neverBelow() && p.falls.together():
		return "; unsafe: the backend runs all work at once, and what it does with less was never seen"
	}
	return ""
}
