package limiter

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/inside"
	"github.com/spillway-go/spillway/internal/priority"
	"github.com/spillway-go/spillway/internal/processors"
	"github.com/spillway-go/spillway/internal/refusal"
)

// Front declares that requests acquire l before the process does any other work for them, as in a
// middleware behind a listener. The middlewares of admissionhttp and admissiongrpc call Front. Once
// some limiter is at the front, the other limiters no longer shed for lack of processors, because a
// request that reaches them is already half done. See Config.IgnoreProcessors.
//
// In front, someone is there for an answer when a deadline passes before the admission. So l then
// refuses the work as spillway.ReasonDeadlineTooClose, with an error that matches context.DeadlineExceeded
// too, and Stats counts a rejection. A context that ends in another way counts as cancelled.
func (l *Limiter) Front() { l.front(cmp.Or(l.door.monitor, processors.Of(time.Now()))) }

// front puts l at the front of the process of m, also if l itself ignores the processors.
func (l *Limiter) front(m *processors.Monitor) {
	l.door.front.Store(true)
	if m != nil {
		m.Front()
	}
}

// door sheds a share of the arrivals while processors are short.
type door struct {
	monitor  *processors.Monitor // nil: processors are ignored
	minShare float64             // share that is always admitted
	front    atomic.Bool         // see Limiter.Front
	sheds    atomic.Bool         // a share of the arrivals is shed, or would be in a dry run
	advice   atomic.Int64        // RetryAfter of the refusals, in nanoseconds
	dryRuns  atomic.Uint64       // arrivals with Request.DryRun

	looking sync.Mutex              // held during a look; locked before mu
	looked  atomic.Int64            // time of the last look
	came    [priority.Levels]uint64 // arrivals that the monitor knows; guarded by looking
	cameDry uint64                  // arrivals with Request.DryRun that the monitor knows; guarded by looking
}

// lookLasts is how long a limiter sheds after its last look.
const lookLasts = time.Second

// lookAtProcessors reports the arrivals to the monitor, which may take a reading, and starts or ends
// shedding.
func (l *Limiter) lookAtProcessors(now time.Duration) {
	d := &l.door
	if !d.looking.TryLock() {
		return // another caller looks
	}
	defer d.looking.Unlock()
	if now < time.Duration(d.looked.Load())+processors.Every && d.looked.Load() > 0 {
		return
	}
	d.looked.Store(int64(now))
	front := d.front.Load()

	l.lock(now)
	l.memos.fold(l.gate)
	seen := processors.Door{Service: l.gate.Took()}
	for lv := range d.came {
		n := l.gate.Came(lv)
		seen.Arrivals[lv], d.came[lv] = float64(n-d.came[lv]), n
		seen.Enforced += seen.Arrivals[lv]
	}
	if d.sheds.Load() {
		l.memos.expect(spillway.ReasonScheduler)
	}
	l.unlock()

	dry := d.dryRuns.Load()
	seen.Enforced = max(seen.Enforced-float64(dry-d.cameDry), 0)
	d.cameDry = dry
	if Mode(l.mode.Load()) != Enforce {
		seen.Enforced = 0
	}
	if !front && d.monitor.Fronted() { // the limiters at the front have counted these requests
		d.sheds.Store(false)
		return
	}
	d.monitor.Look(seen)
	if !d.monitor.Sheds(front) {
		d.sheds.Store(false)
		return
	}
	advice := float64(time.Second) / d.monitor.State().Share
	l.lock(now)
	d.advice.Store(int64(max(time.Duration(advice), l.gate.RetryAfter(spillway.Normal))))
	l.memos.expect(spillway.ReasonScheduler)
	d.sheds.Store(true)
	l.unlock()
}

// allows reports whether the processors admit an arrival.
func (d *door) allows(now time.Duration, p spillway.Priority, enforced bool) bool {
	if now > time.Duration(d.looked.Load())+lookLasts {
		return true // the last look is too old
	}
	if !enforced {
		return d.monitor.WouldAdmit()
	}
	return d.monitor.Admits(priority.Level(p), d.minShare)
}

// stats returns the state of the processors.
func (d *door) stats() inside.Processors {
	s := d.monitor.State()
	if !d.sheds.Load() {
		s.Share = 1
	}
	return inside.Processors{Wait: s.Wait, Bound: s.Aim, Admitted: max(s.Share, d.minShare)}
}

// shed refuses an arrival for lack of processors. Ordinary work is refused without the lock: such refusals are
// many, and processors are what is short.
func (l *Limiter) shed(now time.Duration, a *gate.Arrival) *spillway.Rejection {
	advice := time.Duration(l.door.advice.Load())
	if a.Cost != 1 || a.Traits != 0 {
		l.gate.Shed(l.lock(now), a, spillway.ReasonScheduler)
		return l.refuse(a.Priority, refusal.Of(spillway.ReasonScheduler), advice, 0)
	}
	rej := l.memos.refuse(now, a, spillway.ReasonScheduler, advice)
	l.rejected(a.Priority, rej)
	return rej
}
