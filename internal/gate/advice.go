package gate

import (
	"math"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/priority"
)

// adviceMost bounds the part of the advice that stands for refused callers.
const adviceMost = 30 * time.Second

// A caller that comes back too early costs a refusal, a caller that comes back too late leaves a
// slot idle. A crowd gets its advice at the worst moment, when its own load makes work take several
// times as long as later. So the advice brings back one and a half times as many callers as can be
// served, at the best recent rate.
const (
	overbooked = 1.5
	bestFades  = 30 * time.Second // time constant with which the best rate fades
)

// RetryAfter predicts when work of priority p would find room: the work ahead over the measured
// rate of service. The work ahead is all waiters of the same or a higher priority, and two thirds
// of the callers that were refused earlier and told to come back. So callers that follow the advice
// return at most 1.5 times as fast as work is served, however many were refused. Zero means that
// nothing has been measured, or that the gate will not open again.
func (g *Gate) RetryAfter(p spillway.Priority) time.Duration {
	lv := priority.Level(p)
	return g.advise(lv, g.predict(lv, 1))
}

// advise is the advice for a level with a predicted wait, in nanoseconds.
func (g *Gate) advise(lv int, wait float64) time.Duration {
	if !g.service.known() || g.closed == spillway.ReasonClosed {
		return 0
	}
	booked := (g.booked[lv] + g.back[lv]) / (overbooked * g.bestRate(lv))
	return time.Duration(min(wait+min(booked, float64(adviceMost)), float64(time.Hour)))
}

// bestRate is the best known recent service rate of a level, in slots per nanosecond.
func (g *Gate) bestRate(lv int) float64 {
	return max(g.best[lv], g.free(lv)/max(g.service.hold(lv), 1))
}

// accountRefused adds the work that was refused since the last call, and subtracts the work that has been
// served meanwhile, or could have been.
func (g *Gate) accountRefused(passed time.Duration) {
	if !g.service.known() {
		return
	}
	fades := math.Exp(-float64(passed) / float64(bestFades))
	for lv := range g.booked {
		g.best[lv] *= fades
		g.best[lv] = g.bestRate(lv)
		rate := overbooked * g.best[lv]
		slots := g.booked[lv] + g.back[lv] - float64(passed)*rate
		g.booked[lv] = min(max(slots, 0), float64(adviceMost)*rate)
	}
	if g.shortage != &noShortage {
		g.back = [levels]float64{}
	}
}
