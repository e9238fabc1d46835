package debugpage

import (
	"runtime/metrics"
	"time"
)

// collector measures which share of the processors the garbage collector takes.
type collector struct {
	gc, all float64 // seconds of processors when the share was last known
	last    float64
	at      time.Time
}

// oldShare is the age from which a share is not told. The runtime renews its figures with each collection, and
// collections that take much follow each other quickly.
const oldShare = 20 * time.Second

func (c *collector) share(at time.Time) float64 {
	now := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/gc/mark/idle:cpu-seconds"}}
	metrics.Read(now)
	gc, all := now[0].Value.Float64()-now[2].Value.Float64(), now[1].Value.Float64() // nobody misses an idle processor
	if all-c.all > 0.5 {
		c.last = (gc - c.gc) / (all - c.all)
		c.gc, c.all, c.at = gc, all, at
	}
	if at.Sub(c.at) > oldShare {
		return 0
	}
	return c.last
}
