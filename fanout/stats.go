package fanout

import (
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
)

// Stats holds the counts and the learned times of a Fanout.
type Stats struct {
	Name string
	Mode Mode // Sequential or Parallel: the mode of the next call

	Calls   uint64 // calls of Do, except with a context that had ended
	Partial uint64 // successful calls with a missing branch
	Failed  uint64

	Late       uint64 // branches given up while they ran
	LateEnded  uint64 // late branches that have ended since
	LatePanics uint64 // panics that no caller waited for, and those that OnLate got from hedged branches

	Hedges uint64 // second attempts

	Branches []BranchStats // in the order in which branches start
}

// BranchStats holds the learned times of one branch. The times are of successes, and of attempts
// that ended after the other attempt had succeeded: the latest thousand, or those of a minute or
// two. The times are zero while fewer than 64 are known, and accurate within an eighth. Parallel
// calls of a Fanout with a Hedged or Within branch are all measured. Of other calls at least one in
// sixteen is measured, and each when calls are slow.
type BranchStats struct {
	Name  string
	Quick time.Duration // the 10th percentile: with less time left, no second attempt is made
	Slow  time.Duration // the 95th percentile, or the higher one after which the branch is hedged
}

type counts struct {
	partial, failed             atomic.Uint64
	late, lateEnded, latePanics atomic.Uint64
	hedges                      atomic.Uint64
}

// reportLate counts an attempt of b that no caller waited for, and passes its error to OnLate. last:
// the last attempt of a late branch.
func (p *plan) reportLate(b *spec, err error, last bool) {
	if last {
		p.counts.lateEnded.Add(1)
	}
	if _, panicked := err.(*spillway.PanicError); panicked {
		p.counts.latePanics.Add(1)
	}
	if p.cfg.OnLate != nil {
		p.cfg.OnLate(&BranchError{b.name, err})
	}
}

// Stats returns the counts so far. The counts are read one after the other, not all at the same
// instant.
func (f *Fanout[Req, Res]) Stats() Stats {
	if f == nil {
		return Stats{}
	}
	s := Stats{
		Name: f.cfg.Name, Mode: f.cfg.Mode,
		Calls: f.calls.Load(), Partial: f.counts.partial.Load(), Failed: f.counts.failed.Load(),
		LateEnded: f.counts.lateEnded.Load(), Late: f.counts.late.Load(), LatePanics: f.counts.latePanics.Load(),
		Hedges: f.counts.hedges.Load(),
	}
	if s.Mode == Auto {
		s.Mode = Sequential
		if f.hedged || f.learn.now.Load() != inSequence {
			s.Mode = Parallel
		}
	}
	for i := range f.branches {
		b := &f.branches[i]
		s.Branches = append(s.Branches, BranchStats{b.name, b.times.quick(), b.times.slow()})
	}
	return s
}
