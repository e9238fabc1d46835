package gate

import (
	"math"
	"time"

	"github.com/spillway-go/spillway"
)

// adviceMost bounds the part of the advice that is not the queue's.
const adviceMost = 30 * time.Second

// A caller that comes back too early costs a refusal, one that comes too late a slot that
// nothing uses. And a crowd is told at its worst moment, when all that arrives makes work
// take several times as long as it will take. So half as many again are told to
// come back as can be served in a time, at the best rate of late.
const (
	overbooked = 1.5
	bestFades  = 30 * time.Second // in which what is known of the best rate fades
)

// RetryAfter predicts when work of that priority would find room: the work ahead
// of it over the measured rate of service. Ahead of it are those that wait, and two
// thirds of those that were refused before it and told to come back. So callers that
// heed the advice return at most half as fast again as work is served, however many
// were refused. Zero means that there is nothing to go by, or that the gate will not
// open again.
func (g *Gate) RetryAfter(p spillway.Priority) time.Duration {
	if !g.service.known() || g.closed == spillway.Closed {
		return 0
	}
	lv := level(p)
	booked := (g.booked[lv] + g.demand.back[lv]) / (overbooked * g.bestRate(lv))
	return time.Duration(min(g.predict(lv, 1)+min(booked, float64(adviceMost)), float64(time.Hour)))
}

// bestRate is how many slots the work of a level gets and gives back per nanosecond, as
// far as is known the most of late.
func (g *Gate) bestRate(lv int) float64 {
	return max(g.best[lv], g.free(lv)/max(g.service.hold(lv), 1))
}

// book enters what was refused since the last time, and strikes out what has been
// served meanwhile, or could have been.
func (g *Gate) book(passed time.Duration) {
	if !g.service.known() {
		return
	}
	fades := math.Exp(-float64(passed) / float64(bestFades))
	for lv := range g.booked {
		g.best[lv] *= fades
		g.best[lv] = g.bestRate(lv)
		rate := overbooked * g.best[lv]
		slots := g.booked[lv] + g.demand.back[lv] - float64(passed)*rate
		g.booked[lv] = min(max(slots, 0), float64(adviceMost)*rate)
	}
	g.demand.back = [levels]float64{}
}
