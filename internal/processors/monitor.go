package processors

import (
	"math"
	"math/rand/v2"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/internal/clock"
)

// Monitor reads the runtime and decides about arrivals by a Control. A process has one monitor,
// because its limiters share the processors: see Of. A monitor has no goroutine. The limiters call
// Look while requests arrive.
type Monitor struct {
	base time.Time
	// fronted is set once some limiter is at the front of the process. The other limiters then do not
	// shed, because a request that reaches them is already half done.
	fronted  atomic.Bool
	shedding atomic.Bool
	would    atomic.Uint64         // share of 2^32 that a dry run would admit
	admits   [Levels]atomic.Uint64 // admitted share of 2^32 per level
	delay    atomic.Int64          // wait by the last reading if above the aim, in nanoseconds
	readAt   atomic.Int64          // time of the last reading, in nanoseconds since base

	mu      sync.Mutex
	control Control
	source  func() (Reading, bool)
	read    time.Duration // time of the last reading
	door    Door          // events since the last reading
}

// New returns a monitor of the readings of source. A source returns false if it has no reading.
func New(base time.Time, source func() (Reading, bool)) *Monitor {
	m := &Monitor{base: base, source: source}
	m.publish()
	return m
}

var process = sync.OnceValue(func() *Monitor { return New(time.Now(), runtimeSource()) })

// Of returns the monitor of this process for a limiter that was made at the given time, or nil if
// that time is virtual: virtual time has no relation to the figures of the runtime. A nil Monitor sheds nothing.
func Of(created time.Time) *Monitor {
	if clock.Virtual(created) {
		return nil
	}
	return process()
}

// Front records that a limiter is at the front of the process. The record is permanent.
func (m *Monitor) Front() { m.fronted.Store(true) }

// Fronted reports whether some limiter is at the front of the process.
func (m *Monitor) Fronted() bool { return m.fronted.Load() }

// Look enters the events at one limiter since its last call of Look, and takes a reading if one is due.
func (m *Monitor) Look(d Door) {
	if !clock.Virtual(m.base) && clock.Virtual(time.Now()) {
		return // the caller is in virtual time, and the monitor is not
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, n := range d.Arrivals {
		m.door.Arrivals[i] += n
	}
	m.door.Enforced += d.Enforced
	m.door.Service = max(m.door.Service, d.Service)
	now := time.Since(m.base)
	if m.control.began && now < m.read+Every/2 { // another limiter took a reading just before
		return
	}
	r, ok := m.source()
	if !ok {
		return
	}
	m.read = now
	r.At, r.Door, m.door = now, m.door, Door{}
	m.control.Read(r)
	m.publish()
}

// publish copies the results of the control to fields that callers read without the lock.
func (m *Monitor) publish() {
	for i, share := range m.control.Shares(0) {
		m.admits[i].Store(uint64(share * (1 << 32)))
	}
	m.would.Store(uint64(m.control.Would() * (1 << 32)))
	m.delay.Store(0)
	if m.control.wait > m.control.aim {
		m.delay.Store(int64(m.control.Wait()))
	}
	m.readAt.Store(int64(m.read))
	m.shedding.Store(m.control.Share() < 1 || m.control.Would() < 1)
}

// Sheds reports whether a limiter sheds a share of its arrivals, or would in a dry run. A limiter
// that is not at the front sheds only while no limiter is.
func (m *Monitor) Sheds(front bool) bool {
	return m.shedding.Load() && (front || !m.fronted.Load())
}

// Admits decides by chance about an arrival. The admitted share of all arrivals is at least least.
func (m *Monitor) Admits(level int, minShare float64) bool {
	if minShare > 0 {
		m.mu.Lock()
		defer m.mu.Unlock()
		return rand.Float64() < m.control.Shares(minShare)[level]
	}
	return uint64(rand.Uint32()) < m.admits[level].Load()
}

// WouldAdmit decides by chance about an arrival of a dry run.
func (m *Monitor) WouldAdmit() bool { return uint64(rand.Uint32()) < m.would.Load() }

// Delay is how long a request that arrives now has waited for a processor. It is zero if the wait is
// below the aim, as a garbage collection causes, or if the last reading is old.
func (m *Monitor) Delay() time.Duration {
	if m == nil || m.delay.Load() == 0 || int64(time.Since(m.base))-m.readAt.Load() > int64(3*Every) {
		return 0
	}
	return time.Duration(m.delay.Load())
}

// State is the state of a monitor.
type State struct {
	Wait  time.Duration // wait of a request for a processor, before any code sees the request
	Aim   time.Duration // wait above which arrivals are shed
	Share float64       // admitted part of the arrivals
}

// State returns the state by the last reading, or the state of a calm process if the last reading
// is older than a second.
func (m *Monitor) State() State {
	if m == nil {
		return State{Share: 1}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.base)-m.read > stale {
		return State{Aim: m.control.Aim(), Share: 1}
	}
	return State{m.control.Wait(), m.control.Aim(), m.control.Share()}
}

// runtimeSource returns a source that reads the scheduler's figures of this process. A reading takes
// some microseconds. Only the first reading allocates.
func runtimeSource() func() (Reading, bool) {
	samples := []metrics.Sample{{Name: "/sched/latencies:seconds"}, {Name: "/sched/goroutines/runnable:goroutines"}, {Name: "/sched/gomaxprocs:threads"}}
	var before []uint64
	return func() (r Reading, ok bool) {
		metrics.Read(samples)
		if samples[0].Value.Kind() != metrics.KindFloat64Histogram || samples[1].Value.Kind() != metrics.KindUint64 {
			return r, false
		}
		h := samples[0].Value.Float64Histogram()
		if len(before) == len(h.Counts) {
			r.Waited, r.Squares = moments(h, before)
		}
		before = append(before[:0], h.Counts...)
		r.Runnable = int(samples[1].Value.Uint64())
		if samples[2].Value.Kind() == metrics.KindUint64 {
			r.Processors = int(samples[2].Value.Uint64())
		}
		return r, true
	}
}

// moments returns the sum of the values that a histogram has counted since before, and the sum of
// their squares.
func moments(h *metrics.Float64Histogram, before []uint64) (sum, squares float64) {
	for i, n := range h.Counts {
		if n -= before[i]; n == 0 {
			continue
		}
		v := max(h.Buckets[i], 0)
		if end := h.Buckets[i+1]; !math.IsInf(end, 0) {
			v = (v + end) / 2
		}
		sum, squares = sum+float64(n)*v, squares+float64(n)*v*v
	}
	return sum, squares
}
