package gate

import (
	"math"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// life is the life table of work: for each age, how much of the work that reached the age finished
// before the next age. Work that its deadline or its caller ended counts for as long as it ran, as
// in the actuarial estimate of survival. The table yields the worth of each time that work may be
// allowed: the chance that work finishes in that time, over the time for which it then holds its
// slots.
//
// With heavy tails a short time is worth more than a long one. A short time ends the few pieces
// that would hold their slots for long, and their slots serve several others. So work that its
// deadline ends should wait until little time is left.
type life struct {
	finished, censored            [ages]uint16  // per age, since the last fold: finished, and ended by a deadline or the caller
	risk, died                    [ages]float32 // per age, of recent work: reached the age, and finished at that age
	n                             int           // ends since the last fold
	usual                         float64       // mean age of the work in the table, as an age index; 0: no table
	sum, ends                     int           // sum of the age indexes of the latest ends, and number of these ends
	deadlines, onTime             float64       // recent work that a deadline ended, and its part that ended promptly
	longestUseful, shortestUseful float64       // see judge
	mixed                         bool          // the kinds differ too much for one table
}

const (
	agesPerOctave  = 4
	ages           = 20 * agesPerOctave
	youngest       = 15 * agesPerOctave // 2^15 ns, 33 µs; the oldest is 2^35 ns, 34 s
	lifeMemory     = 1000               // pieces of work that an age remembers; an age that none reaches forgets nothing
	lifeKnown      = 20                 // pieces of work that must reach an age before it is judged
	lifeOther      = agesPerOctave      // shift of the mean age that means other work
	lifeEnds       = 200                // ends behind a mean age: with heavy tails its error is a quarter of an octave
	worthMuch      = 0.95               // part of the best worth that counts as nearly as good
	worthWaiting   = 0.9                // part of the best worth below which unlimited time is bad enough to let work wait
	mostEnded      = 0.2                // share of started work that deadlines may end; a law learns little from such work
	deadlinesKnown = 4
)

// age returns the index of the age of t nanoseconds. An octave has four ages.
func age(t float64) int {
	const one = 1023 * agesPerOctave
	return min(max(int(math.Float64bits(t)>>50)-one-youngest, 0), ages-1)
}

// ageOf is age of a duration.
func ageOf(d time.Duration) float64 { return float64(age(float64(d))) }

// edge is where age i begins.
func edge(i int) float64 {
	if i == 0 {
		return 0
	}
	const one = 1023 * agesPerOctave
	return math.Float64frombits(uint64(i+one+youngest) << 50)
}

// end records the end of work that held its slots for elapsed. prompt is whether work that a deadline
// ended has ended soon after. Work that its caller ended counts for as long as it ran.
// Failures say nothing about how long work takes.
func (l *life) end(elapsed float64, o limit.Outcome, prompt bool) {
	i := age(elapsed)
	switch o {
	case limit.Success:
		l.finished[i]++
	case limit.Canceled:
		l.censored[i]++
	case limit.Deadline:
		l.censored[i]++
		l.deadlines++
		if prompt {
			l.onTime++
		}
		if l.deadlines > 50 {
			l.deadlines, l.onTime = l.deadlines/2, l.onTime/2
		}
	default:
		return
	}
	l.sum += i
	if l.n++; l.n == math.MaxUint16 {
		l.fold()
	}
}

// obeyed reports whether work ends when its deadline passes. If work runs on, a start with little
// time left saves nothing.
func (l *life) obeyed() bool { return l.deadlines >= deadlinesKnown && l.onTime > 0.8*l.deadlines }

// fold adds the ends since the last fold to the table.
func (l *life) fold() {
	if l.n == 0 {
		return
	}
	if l.outdated() {
		l.risk, l.died = [ages]float32{}, [ages]float32{}
	}
	reached := float32(0)
	for i := ages - 1; i >= 0; i-- {
		finished, censored := float32(l.finished[i]), float32(l.censored[i])
		reached += finished + censored
		if reached == 0 {
			continue
		}
		l.risk[i] += reached - censored/2
		l.died[i] += finished
		if over := l.risk[i] / lifeMemory; over > 1 {
			l.risk[i] /= over
			l.died[i] /= over
		}
	}
	l.finished, l.censored, l.n = [ages]uint16{}, [ages]uint16{}, 0
	l.judge()
}

// outdated reports whether the latest ends are of other work than the table: the mean ages differ
// by an octave. Censored work counts with the age that it reached, which moves the mean of the
// same work by less than an octave. By itself the table would fade only at ages that work reaches
// again; after a bad spell some ages are never reached.
func (l *life) outdated() bool {
	l.ends += l.n
	if l.ends < lifeEnds {
		return false
	}
	mean := float64(l.sum) / float64(l.ends)
	other := l.usual > 0 && math.Abs(mean-l.usual) >= lifeOther
	if l.usual == 0 || other {
		l.usual = mean
	} else {
		l.usual += min(float64(l.ends)/lifeMemory, 1) * (mean - l.usual)
	}
	l.sum, l.ends = 0, 0
	return other
}

// judge computes longestUseful and shortestUseful. longestUseful is the longest time whose worth is
// nearly the best; it is infinite where more time does little harm. shortestUseful is the time that
// a start must have: with less, the worth falls or too few pieces finish.
func (l *life) judge() {
	var worth [ages]float64
	best, held, alive := 0.0, 0.0, 1.0
	first, n := -1, 0
	for ; n < ages && l.risk[n] >= lifeKnown; n++ {
		dies := float64(l.died[n] / l.risk[n])
		held += (edge(n+1) - edge(n)) * alive * (1 - dies/2)
		alive *= 1 - dies
		worth[n] = (1 - alive) / held
		if alive <= mostEnded {
			best = max(best, worth[n])
			if first < 0 {
				first = n
			}
		}
	}
	l.longestUseful, l.shortestUseful = math.Inf(1), 0
	if first < 0 || worth[n-1] >= worthWaiting*best {
		return
	}
	last := n - 1
	for worth[last] < worthMuch*best {
		last--
	}
	for worth[first] < worthMuch*best {
		first++
	}
	l.longestUseful, l.shortestUseful = edge(last+1), edge(first+1)
}

// helps reports whether ending work at its deadline frees slots worth having.
func (l *life) helps() bool {
	return l != nil && !l.mixed && l.longestUseful > 0 && !math.IsInf(l.longestUseful, 1) && l.obeyed()
}
