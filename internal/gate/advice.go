package gate

import (
	"time"

	"github.com/spillway-go/spillway"
)

// adviceMost bounds the part of the advice that is not the queue's.
const adviceMost = 30 * time.Second

// RetryAfter predicts when work of that priority would find room: the work ahead
// of it over the measured rate of service. Ahead of it are those that wait, and
// those that were refused before it and told to come back: each refusal books
// the time that its work takes. So callers that heed the advice return no faster
// than work is served, however many were refused. Zero means that there is nothing
// to go by, or that the gate will not open again.
func (g *Gate) RetryAfter(p spillway.Priority) time.Duration {
	if !g.service.known() || g.closed == spillway.Closed {
		return 0
	}
	lv := level(p)
	booked := (g.booked[lv] + g.demand.back[lv]*g.service.hold(lv)) / g.free(lv)
	return time.Duration(min(g.predict(lv, 1)+min(booked, float64(adviceMost)), float64(time.Hour)))
}

// book enters what was refused since the last time, and strikes out what has been
// served meanwhile, or could have been.
func (g *Gate) book(passed time.Duration) {
	for lv := range g.booked {
		free := g.free(lv)
		work := g.booked[lv] + g.demand.back[lv]*g.service.hold(lv) - free*float64(passed)
		g.booked[lv] = min(max(work, 0), free*float64(adviceMost))
	}
	g.demand.back = [levels]float64{}
}
