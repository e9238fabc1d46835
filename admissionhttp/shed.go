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
	logEvery = 10 * time.Second
	// onsetEvery is the least time between two calls of OnShedding.
	onsetEvery = time.Minute
	// calm is the time without a refusal after which shedding is over.
	calm = time.Second
	// riseEvery is how long refusals last before the advice doubles. Each doubling of that time
	// adds the original advice once more.
	riseEvery = 5 * time.Second
)

// shedding tracks refusals for lack of capacity, and how long they have gone on.
type shedding struct {
	base        time.Time
	since, last atomic.Int64 // times of the first and the latest refusal; zero: none
	onset       atomic.Int64 // when OnShedding was last called; zero: never
}

// now returns the time since base, above zero.
func (s *shedding) now() int64 { return int64(time.Since(s.base)) + 1 }

// refused records a refusal. It returns how long refusals have lasted, the time, and whether this
// refusal is the first.
func (s *shedding) refused() (lasts time.Duration, now int64, first bool) {
	now = s.now()
	last := s.last.Swap(now)
	if last == 0 || now-last > int64(calm) {
		s.since.Store(now)
		return 0, now, true
	}
	return max(time.Duration(now-s.since.Load()), 0), now, false
}

// adviceFor returns jittered advice. The advice grows with the time that shedding has lasted.
func adviceFor(advice, lasts time.Duration) time.Duration {
	steps := bits.Len64(uint64(lasts / riseEvery))
	return spread(min(max(advice, time.Second), longestAdvice) * time.Duration(1+steps))
}

// due reports whether every has passed since last, and if so sets last to now. Only one caller gets
// true.
func due(last *atomic.Int64, now int64, every time.Duration) bool {
	at := last.Load()
	return (at == 0 || now-at >= int64(every)) && last.CompareAndSwap(at, now)
}

// counted reports a refusal to the log and to OnShedding, and returns the advice for it in seconds.
func (g *guard) counted(p *page, priority spillway.Priority, advice time.Duration) int {
	if g.shed != nil {
		g.shed.Rejected(priority, p.rejection)
	}
	if p.rejection.Reason == spillway.ReasonDeadlineTooClose && advice < time.Second {
		return wholeSeconds(adviceFor(advice, 0)) // little work is ahead of the request: its caller gave too little time
	}
	lasts, now, first := g.shedding.refused()
	if first && g.onShedding != nil && due(&g.shedding.onset, now, onsetEvery) {
		go g.onShedding()
	}
	return wholeSeconds(adviceFor(advice, lasts))
}

// refuse answers a request that was not admitted.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, priority spillway.Priority, err error) {
	p, advice := pageOf(err)
	if p == nil { // not a refusal, such as a wrong configuration of Keyed
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

// failed logs an error that is no refusal, at most once per logEvery.
func (g *guard) failed(err error) {
	if g.logger != nil && due(&g.broken, g.shedding.now(), logEvery) {
		g.logger.LogAttrs(context.Background(), slog.LevelError, "no limiter for a request", slog.Any("error", err))
	}
}
