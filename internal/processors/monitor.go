package processors

import (
	"math"
	"math/rand/v2"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

// Monitor reads the runtime and sheds by what a Control says. There is one for the process,
// since processors are: see Of. It has no goroutine: whoever comes by calls Look.
type Monitor struct {
	base time.Time
	// fronted says that something stands at a door of the process, where it asks before anything
	// is done. Then nobody else sheds: inside, work would be lost that is half done.
	fronted  atomic.Bool
	shedding atomic.Bool
	would    atomic.Uint64         // as admits, for what nobody sheds
	admits   [Levels]atomic.Uint64 // shares of 2^32
	wait     atomic.Int64          // of the last reading,
	readAt   atomic.Int64          // and when that was

	mu      sync.Mutex
	control Control
	source  func() (Reading, bool)
	read    time.Duration // when the last reading was taken
	door    Door          // since then
}

// New returns a monitor of what source reads. A source that knows nothing returns false.
func New(base time.Time, source func() (Reading, bool)) *Monitor {
	m := &Monitor{base: base, source: source}
	m.publish()
	return m
}

var process = sync.OnceValue(func() *Monitor { return New(time.Now(), runtimeSource()) })

// written is a time before which no clock stands that is right. A clock that is not the machine's,
// as in a test in virtual time, has nothing to do with what the runtime measures.
var written = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// Of returns the monitor of this process, for something that was made at a time by its clock, or nil
// if that clock is not the machine's. The methods of a nil Monitor shed nothing.
func Of(made time.Time) *Monitor {
	if made.Before(written) {
		return nil
	}
	return process()
}

// Front says that something at a door of the process asks. That is for good.
func (m *Monitor) Front() { m.fronted.Store(true) }

// Fronted reports whether something at a door asks.
func (m *Monitor) Fronted() bool { return m.fronted.Load() }

// Look enters what happened at one door since that looked the last time, and takes a reading if
// one is due.
func (m *Monitor) Look(d Door) {
	if !m.base.Before(written) && time.Now().Before(written) {
		return // who looks is in virtual time, and the monitor is not
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, n := range d.Arrivals {
		m.door.Arrivals[i] += n
	}
	m.door.Enforced += d.Enforced
	m.door.InFlight += d.InFlight
	m.door.Service = max(m.door.Service, d.Service)
	now := time.Since(m.base)
	if m.control.began && now < m.read+Every {
		return
	}
	r, ok := m.source()
	if !ok {
		return
	}
	m.read = now
	r.At, r.Door = now, m.door
	m.door = Door{}
	m.control.Read(r)
	m.publish()
}

// publish shows what the control says to those that ask without the lock.
func (m *Monitor) publish() {
	for i, share := range m.control.Shares() {
		m.admits[i].Store(uint64(share * (1 << 32)))
	}
	m.would.Store(uint64(m.control.Would() * (1 << 32)))
	m.wait.Store(int64(m.control.Wait()))
	m.readAt.Store(int64(m.read))
	m.shedding.Store(m.control.Share() < 1 || m.control.Would() < 1)
}

// Sheds reports whether what stands at a door sheds a share of what arrives, or would if it
// enforced that. Others do only while nothing stands at a door.
func (m *Monitor) Sheds(front bool) bool {
	return m.shedding.Load() && (front || !m.fronted.Load())
}

// Admits decides by chance about an arrival. At least a share is admitted.
func (m *Monitor) Admits(level int, least float64) bool {
	return uint64(rand.Uint32()) < max(m.admits[level].Load(), uint64(least*(1<<32)))
}

// WouldAdmit decides by chance about an arrival that is admitted whatever the answer is.
func (m *Monitor) WouldAdmit() bool { return uint64(rand.Uint32()) < m.would.Load() }

// Wait is how long a request waits for a processor before it can ask anything; zero if nothing has
// come by for a second.
func (m *Monitor) Wait() time.Duration {
	if m == nil || m.wait.Load() == 0 || int64(time.Since(m.base))-m.readAt.Load() > int64(stale) {
		return 0
	}
	return time.Duration(m.wait.Load())
}

// State is what a monitor says of itself.
type State struct {
	Wait  time.Duration // of a request for a processor, before it can ask anything
	Aim   time.Duration // above this wait is shed
	Share float64       // of the arrivals that is admitted
}

// State returns the state by the last reading, or that of a calm process if nothing has come by for a
// second.
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

// runtimeSource reads the scheduler's figures of this process. One reading takes some
// microseconds and allocates nothing after the first.
func runtimeSource() func() (Reading, bool) {
	samples := []metrics.Sample{{Name: "/sched/latencies:seconds"}, {Name: "/sched/goroutines/runnable:goroutines"}}
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
		return r, true
	}
}

// moments sums what a histogram has counted since before, and the squares.
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
