package stories

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/service"
)

// tally counts requests by when they were sent, in steps.
type tally struct{ sent, good []atomic.Uint32 }

// newTally has room for the load.
func newTally(load service.Load) *tally {
	var length time.Duration
	for _, s := range load.Stretches {
		length += s.For
	}
	steps := int(length/service.Step) + 1
	return &tally{make([]atomic.Uint32, steps), make([]atomic.Uint32, steps)}
}

// add counts a request that was sent so long after the start, once its outcome is known.
func (t *tally) add(at time.Duration, good bool) {
	i := min(int(at/service.Step), len(t.sent)-1)
	t.sent[i].Add(1)
	if good {
		t.good[i].Add(1)
	}
}

// share is how many of the requests of that time were answered well, in per cent; NaN if
// none was sent.
func (t *tally) share(from, to time.Duration) float64 {
	var sent, good uint32
	for i := int(from / service.Step); i < min(int(to/service.Step), len(t.sent)); i++ {
		sent, good = sent+t.sent[i].Load(), good+t.good[i].Load()
	}
	if sent == 0 {
		return math.NaN()
	}
	return 100 * float64(good) / float64(sent)
}

// recovered is the end of the first step from which on so large a share of the requests of
// a second is answered well. If there is none, it is the end of everything.
func (t *tally) recovered(share float64) (at time.Duration, ever bool) {
	end := time.Duration(len(t.sent)-1) * service.Step
	for at := time.Duration(0); at+time.Second <= end; at += service.Step {
		if t.share(at, at+time.Second) >= share {
			return at + service.Step, true
		}
	}
	return end, false
}
