package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/limit"
)

func TestTrace(t *testing.T) {
	for _, s := range append(visible(), hidden()...) {
		if *fScen == "" || !strings.HasPrefix(s.Name, *fScen) {
			continue
		}
		fmt.Println("==", s.Name)
		c := s.Cfg
		c.Seed = uint64(*fSeeds)
		l := limit.NewAdaptive()
		l.Log = func(f string, v ...any) { fmt.Printf(f+"\n", v...) }
		c.Law = l
		c.TraceEvery = 500 * time.Millisecond
		c.Trace = func(now time.Duration, law limit.Law, g *gate.Gate, r *Result) {
			fmt.Printf("   -- %.1fs L %d inflight %d queued %d ok/s %d\n", now.Seconds(), law.Limit(), g.InFlight(), g.Queued(), sum(r.Bins, now))
		}
		x := Run(c)
		fmt.Printf("good %.1f p50 %.0f p99 %.0f\n", x.Good, x.P50, x.P99)
	}
}

func sum(b []int, now time.Duration) (n int) {
	i := int(now / (100 * time.Millisecond))
	for k := max(0, i-5); k < i; k++ {
		n += b[k]
	}
	return n * 2
}
