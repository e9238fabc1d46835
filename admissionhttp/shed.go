package admissionhttp

import (
	"context"
	"log/slog"
	"math/bits"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
)

const (
	defaultLogEvery = 10 * time.Second
	// calm is how long nothing must be refused for shedding to be over.
	calm = time.Second
	// riseEvery is how long refusals go on until advice is twice as long; it takes
	// twice that time for each further step.
	riseEvery = 5 * time.Second
)

// shedding follows refusals for lack of capacity, and for how long they have gone on.
type shedding struct {
	base        time.Time
	since, last atomic.Int64 // times of the first and the latest refusal; zero: none
	recorded    atomic.Int64
}

// now is the time, above zero.
func (s *shedding) now() int64 { return int64(time.Since(s.base)) + 1 }

// refused counts a refusal and returns for how long there have been some, and
// whether this is the first.
func (s *shedding) refused() (lasts time.Duration, now int64, first bool) {
	now = s.now()
	last := s.last.Swap(now)
	if last == 0 || now-last > int64(calm) {
		s.since.Store(now)
		return 0, now, true
	}
	return max(time.Duration(now-s.since.Load()), 0), now, false
}

// patience returns the advice after shedding has gone on for a while: longer, and
// spread.
func patience(advice, lasts time.Duration) time.Duration {
	steps := bits.Len64(uint64(lasts / riseEvery))
	return spread(min(max(advice, time.Second), longestAdvice) * time.Duration(1+steps))
}

// due reports whether it is time, at most once in every.
func due(mark *atomic.Int64, now int64, every time.Duration) bool {
	at := mark.Load()
	return (at == 0 || now-at >= int64(every)) && mark.CompareAndSwap(at, now)
}

// counted tells log and recording of a refusal, and returns the advice for it.
func (g *guard) counted(p *page, priority spillway.Priority, advice time.Duration) int {
	if g.shed != nil {
		g.shed.Rejected(priority, p.rejection)
	}
	if p.rejection.Reason == spillway.DeadlineTooClose && advice < time.Second {
		return wholeSeconds(patience(advice, 0)) // little work is ahead of it: its caller gave too little time
	}
	lasts, now, first := g.shedding.refused()
	if first && g.recording != nil && due(&g.shedding.recorded, now, g.recording.every()) {
		g.recording.start(g.logger)
	}
	return wholeSeconds(patience(advice, lasts))
}

// refuse answers a request that was not admitted.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, priority spillway.Priority, err error) {
	p, advice := pageOf(err)
	if p == nil { // such as a configuration of Keyed that is wrong
		g.failed(err)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	after := 0
	switch {
	case p.stops:
		after = wholeSeconds(spread(max(advice, time.Second)))
	case p.retry:
		after = g.counted(p, priority, advice)
	}
	p.write(w, r, after, g.refusal)
}

// failed reports an error that is no refusal, once a LogEvery.
func (g *guard) failed(err error) {
	if g.logger != nil && due(&g.broken, g.shedding.now(), g.logEvery) {
		g.logger.LogAttrs(context.Background(), slog.LevelError, "no limiter for a request", slog.Any("error", err))
	}
}
