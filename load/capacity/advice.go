package capacity

import (
	"fmt"
	"math"
	"time"

	"github.com/spillway-go/spillway/load/numbers"
)

// Advice is one recommended setting, with its sum.
type Advice struct {
	What  string  `json:"what"`
	Value float64 `json:"value"`
	How   string  `json:"how"`
}

// headroom is the share of its knee that a replica is planned for: bursts, and one replica
// that is down, take the rest.
const headroom = 0.7

// advise says how to run a service with this knee. quiet is a point at which little waits,
// so that its latency is what the service itself takes.
func advise(slo SLO, knee *rung, quiet *Point, traffic float64) (out []Advice) {
	if quiet.Latency == nil {
		return nil
	}
	add := func(what string, value float64, how string, args ...any) {
		out = append(out, Advice{what, value, fmt.Sprintf(how, args...)})
	}
	rate, l := knee.rate, quiet.Latency
	own := fmt.Sprintf("at %s, where little waits", perSecond(quiet.Rate))
	atOnce := rate * l.Mean / 1000
	add("concurrency", math.Max(1, math.Ceil(atOnce)), "Little's law: %s × %s (mean latency %s) = %s at once",
		perSecond(rate), millis(l.Mean), own, numbers.Format(atOnce))
	switch n := len(slo.Latency); n {
	case 0:
		add("queue", math.Max(1, math.Ceil(atOnce)), "about one service time, because the SLO has no latency: %s × %s = %s",
			perSecond(rate), millis(l.Mean), numbers.Format(atOnce))
	default:
		b := slo.Latency[n-1]
		took := l.at(b.Quantile)
		spare := float64(b.At)/float64(time.Millisecond) - took
		if spare <= 0 {
			add("queue", 0, "the service's own %s, %s %s, takes all of the %v that the SLO allows", b.Name, millis(took), own, b.At)
			break
		}
		waits := rate * spare / 1000
		add("queue", math.Floor(waits), "what can wait within the SLO: %s × (%v − %s, the service's own %s) = %s; what waits longer is too late anyway",
			perSecond(rate), b.At, millis(took), b.Name, numbers.Format(waits))
	}
	if traffic > 0 {
		exact := traffic / (headroom * rate)
		add("replicas", math.Ceil(exact), "%s ÷ (%s × %v) = %s: each is planned for %v %% of its knee, the rest is for bursts and for a replica that is down",
			perSecond(traffic), perSecond(rate), headroom, numbers.Format(exact), 100*headroom)
	}
	return out
}
