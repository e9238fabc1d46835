package gate

import (
	"math"

	"github.com/spillway-go/spillway/limit"
)

// life is the life table of work: of what reached an age, how much finished
// before the next. Work that its deadline or its caller ended counts as long as it was
// seen, as in the actuarial estimate of survival. From it follows what work is worth that
// may run for some time at most: the chance that it finishes, over the time for
// which it holds its slots.
//
// With heavy tails little time is worth more than much: it ends the few that would
// hold their slots for long, and their slots go to several others. So work with a
// deadline that ends its work had better wait until little time is left.
type life struct {
	ended, cut    [ages]uint16  // since the last fold: finished, and ended by a deadline or the caller
	risk, died    [ages]float32 // reached the age, finished in it; lately
	n             int           // since the last fold
	usual         float64       // mean age of what the table was made of, in ages; 0: no table
	sum, ends     int           // of the ages of the latest ends, and how many these are
	cuts, onTime  float64       // ended by a deadline, and of those at it; lately
	enough, least float64       // see judge
	mixed         bool          // the work is of kinds that differ, and the table is about none of them
}

const (
	agesPerOctave = 4
	ages          = 20 * agesPerOctave
	youngest      = 15 * agesPerOctave // 2^15 ns, 33 µs; the oldest is 2^35 ns, 34 s
	lifeMemory    = 1000               // of an age, in pieces of work that reach it; kept while none does
	lifeKnown     = 20                 // reached an age before it is judged
	lifeOther     = agesPerOctave      // the mean age shifts by so much: it is other work
	lifeEnds      = 200                // behind a mean age: with heavy tails its error is a quarter of an octave
	worthMuch     = 0.95               // of the best worth: nearly as good
	worthWaiting  = 0.9                // of the best worth: so bad that others wait for the better
	mostCut       = 0.2                // of what starts may be left to its deadline; a law learns little from that
	cutsKnown     = 4
)

// age is the index of the age t is in: four to an octave.
func age(t float64) int {
	const one = 1023 * agesPerOctave
	return min(max(int(math.Float64bits(t)>>50)-one-youngest, 0), ages-1)
}

// edge is where age i begins.
func edge(i int) float64 {
	if i == 0 {
		return 0
	}
	const one = 1023 * agesPerOctave
	return math.Float64frombits(uint64(i+one+youngest) << 50)
}

// end enters how work ended that held its slots for took. late is by how much it
// outlived its deadline, if that ended it. What its caller ended counts as long as it
// was seen; failures say nothing about how long work takes.
func (l *life) end(took float64, o limit.Outcome, late, mean float64) {
	i := age(took)
	switch o {
	case limit.Success:
		l.ended[i]++
	case limit.Canceled:
		l.cut[i]++
	case limit.Deadline:
		l.cut[i]++
		l.cuts++
		if late < mean/8 {
			l.onTime++
		}
		if l.cuts > 50 {
			l.cuts, l.onTime = l.cuts/2, l.onTime/2
		}
	default:
		return
	}
	l.sum += i
	if l.n++; l.n == math.MaxUint16 {
		l.fold()
	}
}

// obeyed reports whether work ends when its deadline passes. If it runs on, little
// time left saves nothing.
func (l *life) obeyed() bool { return l.cuts >= cutsKnown && l.onTime > 0.8*l.cuts }

// fold enters what ended since the last time into the table.
func (l *life) fold() {
	if l.n == 0 {
		return
	}
	if l.outdated() {
		l.risk, l.died = [ages]float32{}, [ages]float32{}
	}
	reached := float32(0)
	for i := ages - 1; i >= 0; i-- {
		ended, cut := float32(l.ended[i]), float32(l.cut[i])
		reached += ended + cut
		if reached == 0 {
			continue
		}
		l.risk[i] += reached - cut/2
		l.died[i] += ended
		if over := l.risk[i] / lifeMemory; over > 1 {
			l.risk[i] /= over
			l.died[i] /= over
		}
	}
	l.ended, l.cut, l.n = [ages]uint16{}, [ages]uint16{}, 0
	l.judge()
}

// outdated reports whether the latest ends are of other work than the table: their
// mean age differs by an octave. Work that was cut counts as old as it became, which
// moves the mean of the same work by less. The table would fade only as its ages are
// reached again, and those that a bad spell left behind never are.
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

// judge finds enough, the most time whose worth is nearly the best, and least, what
// a start must have, because with less the worth falls or too few finish. Enough is
// infinite where more time does little harm.
func (l *life) judge() {
	var worth [ages]float64
	best, held, alive := 0.0, 0.0, 1.0
	first, n := -1, 0
	for ; n < ages && l.risk[n] >= lifeKnown; n++ {
		dies := float64(l.died[n] / l.risk[n])
		held += (edge(n+1) - edge(n)) * alive * (1 - dies/2)
		alive *= 1 - dies
		worth[n] = (1 - alive) / held
		if alive <= mostCut {
			best = max(best, worth[n])
			if first < 0 {
				first = n
			}
		}
	}
	l.enough, l.least = math.Inf(1), 0
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
	l.enough, l.least = edge(last+1), edge(first+1)
}

// helps reports whether deadlines free slots worth having.
func (l *life) helps() bool {
	return !l.mixed && l.enough > 0 && !math.IsInf(l.enough, 1) && l.obeyed()
}
