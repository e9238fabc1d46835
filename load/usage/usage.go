// Package usage measures what this process uses: processor time, memory, allocations,
// goroutines, garbage collection; and some of that of another process, from outside.
// Where the system does not tell, a figure is 0.
package usage

import (
	"os"
	"runtime"
	"runtime/metrics"
	"time"
)

// Usage is what the process used between Start and Stop.
type Usage struct {
	Seconds        float64 `json:"-"`
	Mallocs        uint64  `json:"mallocs"` // objects allocated
	AllocBytes     uint64  `json:"alloc_bytes"`
	PeakGoroutines int     `json:"peak_goroutines"`
	PeakRSS        uint64  `json:"peak_rss_bytes"`
	CPUSeconds     float64 `json:"cpu_seconds"` // user and system
	GCShare        float64 `json:"gc_share"`    // of the processor time the runtime accounts for, without idle time

	// Memory of stacks at the peak above that at the start, and goroutines at
	// that moment above those at the start: their ratio is a goroutine's stack.
	PeakStackBytes uint64 `json:"-"`
	PeakStacks     int    `json:"-"`
}

// Outside is what a process has used so far, as others see it.
type Outside struct {
	CPUSeconds float64
	RSS        uint64 // bytes, now
	Switches   uint64 // of its threads that are alive, by the system
}

// interval is how often what has a peak is looked at.
const interval = 10 * time.Millisecond

// Probe is a measurement under way. It owns one goroutine, which does not count.
type Probe struct {
	started time.Time
	cpu     time.Duration
	before  reading
	peaks   chan peaks
}

type peaks struct{ goroutines, stacks, stackBytes int }

// Start begins a measurement. Peak memory counts from now where the system can
// forget an earlier peak, as Linux does; otherwise from the start of the process.
func Start() *Probe {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // forgets the peak
	p := &Probe{peaks: make(chan peaks)}
	go p.watch(runtime.NumGoroutine(), read()) // read here: by the time that it runs, stacks may have grown
	p.before, p.cpu, p.started = read(), CPU(), time.Now()
	return p
}

// watch looks at what has a peak until Stop takes it. base is the number of goroutines
// without this one, r what their stacks took.
func (p *Probe) watch(base int, r reading) {
	tick := time.Tick(interval)
	stackBase := r.uint(stackBytes)
	most := peaks{goroutines: base}
	for {
		if n := runtime.NumGoroutine() - 1; n > most.goroutines {
			metrics.Read(r[stackBytes : stackBytes+1])
			most = peaks{n, n - base, int(r.uint(stackBytes)) - int(stackBase)}
		}
		select {
		case <-tick:
		case p.peaks <- most:
			return
		}
	}
}

// Stop ends the measurement and returns it. It may be called once.
func (p *Probe) Stop() Usage {
	u := Usage{Seconds: time.Since(p.started).Seconds(), CPUSeconds: (CPU() - p.cpu).Seconds()}
	_, u.PeakRSS = Resident(os.Getpid())
	most := <-p.peaks
	u.PeakGoroutines, u.PeakStacks, u.PeakStackBytes = most.goroutines, most.stacks, uint64(max(most.stackBytes, 0))

	after := read()
	since := func(i int) uint64 { return after.uint(i) - p.before.uint(i) }
	u.Mallocs, u.AllocBytes = since(objects)+since(tinyObjects), since(heapBytes)
	if busy := after.busy() - p.before.busy(); busy > 0 {
		u.GCShare = (after.float(gcCPU) - p.before.float(gcCPU)) / busy
	}
	return u
}

// reading is one look at the runtime's own figures.
type reading []metrics.Sample

const (
	objects = iota
	tinyObjects
	heapBytes
	gcCPU
	totalCPU
	idleCPU
	stackBytes
	assistCPU
)

func read() reading {
	r := reading{
		objects:     {Name: "/gc/heap/allocs:objects"},
		tinyObjects: {Name: "/gc/heap/tiny/allocs:objects"},
		heapBytes:   {Name: "/gc/heap/allocs:bytes"},
		gcCPU:       {Name: "/cpu/classes/gc/total:cpu-seconds"},
		totalCPU:    {Name: "/cpu/classes/total:cpu-seconds"},
		idleCPU:     {Name: "/cpu/classes/idle:cpu-seconds"},
		stackBytes:  {Name: "/memory/classes/heap/stacks:bytes"},
		assistCPU:   {Name: "/cpu/classes/gc/mark/assist:cpu-seconds"},
	}
	metrics.Read(r)
	return r
}

func (r reading) uint(i int) uint64   { return r[i].Value.Uint64() }
func (r reading) float(i int) float64 { return r[i].Value.Float64() }

// busy is processor time that was not idle. The runtime brings it up to date
// with every collection.
func (r reading) busy() float64 { return r.float(totalCPU) - r.float(idleCPU) }

// Spent is the processor time, in seconds, that the runtime accounts for so far: the
// collector's, the part of that which allocating goroutines had to do, and all but idle
// time. The runtime brings it up to date with every collection.
func Spent() (gc, assist, busy float64) {
	r := read()
	return r.float(gcCPU), r.float(assistCPU), r.busy()
}
