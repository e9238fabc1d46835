package limiter

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
)

// defaultMemoryShare is the share of live memory from which the garbage collector runs
// most of the time, because the memory left under the limit is soon filled with garbage.
const defaultMemoryShare = 0.8

// memory compares live memory with the memory limit.
type memory struct {
	owned
	share float64
	read  func() (live, limit float64)
}

// Memory returns a signal that presses when the memory that the garbage collector
// cannot free reaches a share of the limit set by GOMEMLIMIT or debug.SetMemoryLimit.
// A share of zero means 0.8. Beyond the share a process spends its time on garbage
// collection, and then is killed. Without a memory limit the level is zero.
//
// The level is from the last collection and excludes memory allocated since. If requests
// hold megabytes, use a smaller share, such as 0.7.
func Memory(share float64) Signal {
	if !(share > 0) {
		share = defaultMemoryShare
	}
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, // memory that the last collection could not free
		{Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/memory/classes/metadata/other:bytes"},
	}
	return &memory{share: share, read: func() (live, limit float64) {
		metrics.Read(samples)
		for _, s := range samples {
			if s.Value.Kind() == metrics.KindUint64 {
				live += float64(s.Value.Uint64())
			}
		}
		return live, float64(debug.SetMemoryLimit(-1)) // a negative argument only reads the limit
	}}
}

// Name returns "memory".
func (m *memory) Name() string { return "memory" }

// Level returns the live share of the limit divided by the share that presses.
func (m *memory) Level() float64 {
	live, limit := m.read()
	if limit <= 0 || limit >= math.MaxInt64 {
		return 0
	}
	return live / limit / m.share
}
