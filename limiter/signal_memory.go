package limiter

import (
	"math"
	"runtime/debug"
	"runtime/metrics"
)

// defaultMemoryShare is where the collector begins to run all the time: half of
// what is left to it under the limit is garbage it must find first.
const defaultMemoryShare = 0.8

// memory compares what is live with the memory limit.
type memory struct {
	owned
	share float64
	read  func() (live, limit float64)
}

// Memory is a signal that presses when the memory in use that the collector
// cannot free reaches a share of the limit that GOMEMLIMIT or
// debug.SetMemoryLimit sets; zero means 0.8. Beyond it a process spends its time
// collecting, and then is killed. Without a memory limit its level is zero.
//
// The level is that of the last collection. What is allocated since is not in it: where
// requests hold megabytes, take a smaller share, such as 0.7.
func Memory(share float64) Signal {
	if !(share > 0) {
		share = defaultMemoryShare
	}
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"}, // what the last collection could not free
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
		return live, float64(debug.SetMemoryLimit(-1)) // negative: only reads
	}}
}

// Name returns "memory".
func (m *memory) Name() string { return "memory" }

// Level returns the live share of the limit over the share that presses.
func (m *memory) Level() float64 {
	live, limit := m.read()
	if limit <= 0 || limit >= math.MaxInt64 {
		return 0
	}
	return live / limit / m.share
}
