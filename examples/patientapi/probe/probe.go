// Package probe measures what the process it runs in uses, from Start to Stop:
// allocations, peak goroutines, peak memory, processor time, garbage collection.
// Where the system does not tell, a figure is 0.
package probe

import (
	"math"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"
)

// Usage is what the process used between Start and Stop.
type Usage struct {
	Seconds        float64 `json:"seconds"`
	Mallocs        uint64  `json:"mallocs"`     // objects allocated
	AllocBytes     uint64  `json:"alloc_bytes"` // bytes allocated
	PeakGoroutines int     `json:"peak_goroutines"`
	PeakRSS        uint64  `json:"peak_rss_bytes"`
	CPUSeconds     float64 `json:"cpu_seconds"`          // user and system
	GCShare        float64 `json:"gc_share"`             // of the processor time the runtime accounts for, without idle time
	GCPauseP99     float64 `json:"gc_pause_p99_seconds"` // upper bound of its bucket
	GCCycles       uint64  `json:"gc_cycles"`
}

// interval is how often what has a peak is looked at.
const interval = 10 * time.Millisecond

// Probe is a measurement under way. It owns one goroutine, which does not count.
type Probe struct {
	started time.Time
	cpu     float64
	before  reading
	rss     rss
	most    chan int // goroutines
}

// Start begins a measurement. Peak memory counts from now where the system can
// forget an earlier peak, as Linux does; otherwise from the start of the process.
func Start() *Probe {
	p := &Probe{most: make(chan int)}
	p.rss.reset()
	go p.watch(runtime.NumGoroutine())
	p.before, p.cpu, p.started = read(), cpuSeconds(), time.Now()
	return p
}

// watch looks at the number of goroutines, without this one, until Stop takes the most.
func (p *Probe) watch(most int) {
	tick := time.Tick(interval)
	for {
		most = max(most, runtime.NumGoroutine()-1)
		select {
		case <-tick:
		case p.most <- most:
			return
		}
	}
}

// Stop ends the measurement and returns it. It may be called once.
func (p *Probe) Stop() Usage {
	u := Usage{Seconds: time.Since(p.started).Seconds(), CPUSeconds: cpuSeconds() - p.cpu, PeakRSS: p.rss.peak(), PeakGoroutines: <-p.most}
	after := read()
	since := func(i int) uint64 { return after[i].Value.Uint64() - p.before[i].Value.Uint64() }
	u.Mallocs, u.AllocBytes, u.GCCycles = since(objects)+since(tinyObjects), since(heapBytes), since(cycles)
	if busy := after.busy() - p.before.busy(); busy > 0 {
		u.GCShare = (after.float(gcCPU) - p.before.float(gcCPU)) / busy
	}
	u.GCPauseP99 = quantile(p.before[pauses].Value.Float64Histogram(), after[pauses].Value.Float64Histogram(), 0.99)
	return u
}

// reading is one look at the runtime's own figures.
type reading []metrics.Sample

const (
	objects = iota
	tinyObjects
	heapBytes
	cycles
	gcCPU
	totalCPU
	idleCPU
	pauses
)

func read() reading {
	r := reading{
		objects:     {Name: "/gc/heap/allocs:objects"},
		tinyObjects: {Name: "/gc/heap/tiny/allocs:objects"},
		heapBytes:   {Name: "/gc/heap/allocs:bytes"},
		cycles:      {Name: "/gc/cycles/total:gc-cycles"},
		gcCPU:       {Name: "/cpu/classes/gc/total:cpu-seconds"},
		totalCPU:    {Name: "/cpu/classes/total:cpu-seconds"},
		idleCPU:     {Name: "/cpu/classes/idle:cpu-seconds"},
		pauses:      {Name: "/sched/pauses/total/gc:seconds"},
	}
	metrics.Read(r)
	return r
}

func (r reading) float(i int) float64 { return r[i].Value.Float64() }

// busy is processor time that was not idle. The runtime brings it up to date
// with every collection.
func (r reading) busy() float64 { return r.float(totalCPU) - r.float(idleCPU) }

// quantile returns the upper bound of the bucket that holds the quantile q of
// what was counted between two readings of a histogram; 0 if nothing was.
func quantile(before, after *metrics.Float64Histogram, q float64) float64 {
	counts := slices.Clone(after.Counts)
	var total uint64
	for i, n := range before.Counts {
		counts[i] -= n
		total += counts[i]
	}
	rank := max(uint64(math.Ceil(q*float64(total))), 1)
	for i, n := range counts {
		if n < rank {
			rank -= n
			continue
		}
		if upper := after.Buckets[i+1]; !math.IsInf(upper, 1) {
			return upper
		}
		return after.Buckets[i]
	}
	return 0
}
