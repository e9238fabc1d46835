package limit

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// falls looks whether a backend gets less done the more runs in it. It counts ends and
// time at each octave of concurrency, a piece of time at a time. Much that runs into its
// deadlines means one of two things. In a queue in front of the backend's slots all wait
// alike, and what is in time was nearly late: then little is done in time, although the
// backend would do well behind a limit, and the piece is left out. In a backend that runs
// all of it at once the short work is done well in time: then that is what it can do.
type falls struct {
	at             octaves // of the last piece of time, until it is judged
	began          time.Duration
	good           ended         // in it
	late           ended         // to its deadline
	lost           float64       // to overload and to callers that left
	shared, before time.Duration // in which much was late and the rest well in time, and in the era before
	now            octaves
	old            octaves // of the era before
}

type octaves [18]octave // by the length of the concurrency in bits

type octave struct{ ends, late, span float64 }

// ended is how much ended, and how long it took in all.
type ended struct{ n, took float64 }

const (
	fallsPiece  = 100 * time.Millisecond
	fallsBy     = 0.2    // of the throughput: few slots are busy for longest with long work when most waits
	fallsShared = 0.1    // where all of it runs at once; less may be how times scatter
	fallsSure   = 2.5    // standard errors, on both sides
	fallsKnown  = 30     // ends at the lower concurrency, and as many expected from there on
	fallsLonger = 0.1    // of the ends that may be lost
	fallsWell   = 2. / 3 // of the time after which work was late is well in time
)

func octaveOf(inFlight int) int { return min(bits.Len(uint(max(inFlight, 0))), len(octaves{})-1) }

// pass enters time with so much in flight.
func (f *falls) pass(now, d time.Duration, inFlight int) {
	f.at[octaveOf(inFlight)].span += float64(d)
	if now-f.began < fallsPiece {
		return
	}
	all := f.good.n + f.late.n + f.lost
	few := f.late.n+f.lost <= fallsLonger*all
	well := f.lost <= fallsLonger*all && f.good.took*f.late.n < fallsWell*f.late.took*f.good.n
	if well && !few {
		f.shared += now - f.began
	}
	if few || well {
		for i, o := range f.at {
			if few { // else what was late may have been done by half, or not at all
				o.ends += o.late
			}
			f.now[i].ends += o.ends
			f.now[i].span += o.span
		}
	}
	f.at, f.began, f.good, f.late, f.lost = octaves{}, now, ended{}, ended{}, 0
}

// end enters the end of work of which so much was in flight until then.
func (f *falls) end(inFlight int, o Outcome, took float64) {
	switch at := &f.at[octaveOf(inFlight)]; o {
	case Success:
		at.ends++
		f.good = ended{f.good.n + 1, f.good.took + took}
	case Deadline:
		at.late++
		f.late = ended{f.late.n + 1, f.late.took + took}
	case Overload, Canceled:
		f.lost++
	}
}

func (f *falls) age() {
	f.old, f.now = f.now, octaves{}
	f.before, f.shared = f.shared, 0
}

// together reports whether the backend runs all work at once: for more than a moment
// much was late, and the rest was well in time.
func (f *falls) together() bool { return f.shared+f.before > time.Second }

// worst finds the concurrency from which on surely less is done than between two lower
// ones, and what is done at both, a second.
func (f *falls) worst() (from, to int, before, after float64) {
	var at octaves
	var above octave
	for i := range at {
		at[i].ends, at[i].span = f.now[i].ends+f.old[i].ends, (f.now[i].span+f.old[i].span)/1e9
		above.ends, above.span = above.ends+at[i].ends, above.span+at[i].span
	}
	share := 1 - fallsBy
	if f.together() {
		share = 1 - fallsShared
	}
	for i := range at {
		if i > 0 {
			above.ends, above.span = above.ends-at[i-1].ends, max(above.span-at[i-1].span, 0)
		}
		sure := above.ends + fallsSure*fallsSure/2 + fallsSure*math.Sqrt(above.ends+fallsSure*fallsSure/4) // also of few
		var below octave
		for low := i - 1; low >= 0; low-- {
			below.ends, below.span = below.ends+at[low].ends, below.span+at[low].span
			if below.ends < fallsKnown {
				continue
			}
			best := (below.ends - fallsSure*math.Sqrt(below.ends)) / below.span
			if most := sure / above.span; above.span*best >= fallsKnown && most < share*best {
				share = most / best
				from, to, before, after = low, i, below.ends/below.span, above.ends/above.span
			}
		}
	}
	return from, to, before, after
}

// Unsafe reports whether the estimate must not be trusted: because the backend gets
// less done in time the more runs in it, so that it collapses unprotected and what it
// would do behind a limit does not show; because it runs all work at once and was only
// ever seen overloaded; or because nothing can be known. State says so too.
func (p *Passive) Unsafe() bool { return p.unknown() || p.falling() != "" }

// unknown reports whether work has run into its deadlines from the start on.
func (p *Passive) unknown() bool { return p.last.drowned && p.unloaded == [Classes]mean{} }

// falling says what else Unsafe does; empty: it is not.
func (p *Passive) falling() string {
	from, to, before, after := p.falls.worst()
	switch {
	case to > 0:
		return fmt.Sprintf("; unsafe: the backend gets less done the more runs in it, %.0f/s with about %d in flight and %.0f/s from %d on",
			before, 3<<from>>2, after, 1<<to>>1)
	case p.blind() && p.falls.together():
		return "; unsafe: the backend runs all work at once, and what it does with less was never seen"
	}
	return ""
}
