package fanout

import (
	"sync/atomic"

	"github.com/spillway-go/spillway"
)

// Stats holds the counts of a Fanout.
type Stats struct {
	Mode Mode // Sequential or Parallel: the mode of the next call

	Calls   uint64 // calls of Do, except with a context that had ended
	Partial uint64 // successful calls with a missing branch
	Failed  uint64

	Late       uint64 // branches given up while they ran
	LateEnded  uint64 // late branches that have ended since
	LatePanics uint64 // panics that no caller waited for, and those that OnLate got from hedged branches

	Hedges uint64 // second attempts
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
		Mode:  f.cfg.Mode,
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
	return s
}
