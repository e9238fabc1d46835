package reuse

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
)

type outlierJob struct {
	Contestant string
	With       bool
	Users      int
}

// outlier holds a page of 64 KiB for each user at a time, one of which grows to 64 MiB in
// the middle, and looks at the resident memory at the end.
func outlier(_ context.Context, j outlierJob) (map[string]float64, error) {
	const times = 50
	p := newPool(j.Contestant, normal)
	holding := &pool{cycles: func(n int) {
		for range n {
			p.use(dirty, func() { time.Sleep(holdFor / 5) })
		}
	}}
	hold := func() { ready(holding, j.Users, j.Users*times).work() }
	began := time.Now()
	hold()
	if j.With {
		p.use(huge, func() {})
	}
	hold()
	answer.Store(nil)
	debug.FreeOSMemory()
	debug.FreeOSMemory()
	hold()
	out := map[string]float64{"rate": 3 * float64(j.Users) * times / time.Since(began).Seconds()}
	if rss, ok := contestant.Resident(); ok {
		out["rss"] = float64(rss)
	}
	return out, nil
}
