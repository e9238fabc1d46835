package workerpool

import (
	"context"
	"math/bits"
	"runtime"
	"time"
	"unsafe"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/refusal"
)

// Submit hands job over and returns when the pool has accepted it: at once
// while a worker or a place in the queue is free, otherwise after a wait that
// ctx and Config.MaxWait bound. It returns a *spillway.Rejection when the job is
// refused and ctx.Err() when ctx ends first; then the job never runs. A job that
// would wait past the deadline of ctx, by what was measured, is refused at once.
func (p *Pool) Submit(ctx context.Context, job Job) error {
	if err := ctx.Err(); err != nil {
		p.tally.gone.Add(1)
		return err
	}
	return p.submit(ctx, job, nil, p.cfg.MaxWait >= 0)
}

// TrySubmit is Submit without the wait: when the queue is full it returns a
// *spillway.Rejection at once. It does not ask whether ctx has ended, which
// travels to the job.
func (p *Pool) TrySubmit(ctx context.Context, job Job) error {
	if p.full() {
		return p.refuse(spillway.QueueFull)
	}
	return p.offer(ctx, job, nil, false)
}

func (p *Pool) submit(ctx context.Context, job Job, n *note, mayWait bool) error {
	if !mayWait && p.full() {
		return p.refuse(spillway.QueueFull)
	}
	return p.offer(ctx, job, n, mayWait)
}

// offer is submit where the queue is not known to be full.
func (p *Pool) offer(ctx context.Context, job Job, n *note, mayWait bool) error {
	state := p.state.Load()
	lv := level(spillway.PriorityFrom(ctx))
	if state&(shut|queuing|shaky) != 0 || state&(spare|waking) == spare && state>>stateBits == 0 {
		return p.submitSlowly(ctx, job, n, lv, mayWait) // often to an idle worker
	}
	r := &p.rings[lv]
	era := r.Era() // before used is read
	room, exact := p.room(lv)
	if !mayWait && exact && state&spare == 0 && r.Full(room) && p.nothingStale() {
		return p.refuse(p.fullness(lv))
	}
	if p.cost.Load() > 0 {
		if reason := p.hopeless(ctx, p.ahead(lv)); reason != 0 {
			return p.refuse(reason)
		}
	}
	n = p.stamp(n, r.Pushed())
	e, ok := entry{ctx, job, n}, false
	if exact {
		ok = r.PushIn(era, e, room)
	} else if p.used.Load()&(1<<lv) != 0 {
		ok, _ = p.pushBeside(e, lv, 0)
	}
	if !ok {
		return p.submitSlowly(ctx, job, n, lv, mayWait)
	}
	if p.state.Load()&(spare|waking) == spare && r.Len() > 0 {
		p.wake() // else a worker has it already
	}
	return nil
}

// full reports whether the queue has no room for anybody, from loads alone. False
// may only mean that it is not so simple.
func (p *Pool) full() bool {
	if p.state.Load()&(spare|shaky|shut|asks) != 0 {
		return false
	}
	used, most := p.used.Load(), p.queueCap
	if used&(used-1) != 0 {
		return p.surely() >= most
	}
	return p.rings[bits.TrailingZeros32(used)%levels].Full(most) // Held may count too many
}

// room is how many jobs may be in the ring of a level. It is exact while only
// one level is used.
func (p *Pool) room(lv int) (n int, exact bool) {
	n = int(p.rooms[lv].Load())
	used := p.used.Load()
	if used == 1<<lv {
		return n, true
	}
	return p.roomBeside(lv, n, used), false
}

// roomBeside is room where jobs of other levels have been seen: n at most.
func (p *Pool) roomBeside(lv, n int, used uint32) int {
	total := p.queueCap
	for i := range p.rings {
		if i == lv || used&(1<<i) == 0 {
			continue
		}
		k := p.rings[i].Held()
		total -= k
		if i < lv {
			n -= k
		}
	}
	return min(n, total)
}

// use makes a level one whose ring gets jobs. Whoever is about to push by the
// length of the only ring is stopped before there is another. The caller holds
// the lock.
func (p *Pool) use(lv int) {
	if used := p.used.Load(); used != 0 && used&mixed == 0 {
		p.used.Or(mixed)
		p.rings[bits.TrailingZeros32(used)].NewEra()
	}
	p.used.Or(1 << lv)
}

// pushBeside pushes e where several levels are used. Whoever does so is counted
// as a job until the ring counts it: of two that come for the last place, the
// second sees the first. alone says that nobody was counted who may not have
// come, so that there was no room indeed.
func (p *Pool) pushBeside(e entry, lv, free int) (ok, alone bool) {
	others := int(p.pushing.Add(1)) - 1
	room, _ := p.room(lv)
	ok = p.rings[lv].Push(e, room+free-others)
	p.pushing.Add(-1)
	return ok, others == 0
}

// fullness is why a job of a level is refused when there is no room for it.
func (p *Pool) fullness(lv int) spillway.Reason {
	if p.rooms[lv].Load() < int64(p.queueCap) {
		return spillway.WaitTooLong
	}
	return spillway.QueueFull
}

// stamp notes the time, if anybody wants to know: for every job if OnDone is
// told, for some otherwise. k counts jobs.
func (p *Pool) stamp(n *note, k uint64) *note {
	weight := p.every.Load()
	if k&(weight-1) != 0 {
		if weight = 0; p.cfg.OnDone == nil {
			return n
		}
	}
	if n == nil {
		if n, _ = p.notes.Get().(*note); n == nil {
			n = &note{}
		}
	}
	n.timed, n.weight, n.at = true, weight, p.now()
	return n
}

// refuse counts a refusal and makes it, without a lock or an allocation.
func (p *Pool) refuse(reason spillway.Reason) error {
	var here byte // goroutines differ in where their stacks are
	s := &p.tally.shards[uintptr(unsafe.Pointer(&here))>>12%shards]
	n := s.refused[reason].Add(1)
	if reason <= spillway.WaitTooLong {
		return p.nays.Load()[reason][n%spread]
	}
	return refusal.Of(reason).Near(0, n)
}

// hopeless is why a job with so many ahead would wait in vain, or zero.
func (p *Pool) hopeless(ctx context.Context, ahead int) spillway.Reason {
	wait := time.Duration(int64(ahead) * p.cost.Load())
	end, ok := ctx.Deadline()
	if !ok || ahead == 0 {
		return 0
	}
	if time.Until(end) < wait+time.Duration(p.long.Load()) {
		return spillway.DeadlineTooClose
	}
	return 0
}

// submitSlowly decides under the lock.
func (p *Pool) submitSlowly(ctx context.Context, job Job, n *note, lv int, mayWait bool) error {
	if p.cost.Load() > 0 && p.state.Load()&shut == 0 {
		if reason := p.hopeless(ctx, p.ahead(lv)); reason != 0 {
			return p.refuse(reason)
		}
	}
	if !mayWait && p.state.Load()&queuing != 0 {
		p.refill() // those who wait come first, but there may be room for all
	}
	p.mu.Lock()
	if reason := p.closed; reason != 0 {
		p.mu.Unlock()
		return p.refuse(reason)
	}
	if n == nil || !n.timed {
		n = p.stamp(n, p.accepted)
	}
	e := entry{ctx, job, n}
	if p.accept(e, lv, mayWait) {
		return nil
	}
	// What nobody waits for any more must not keep a place.
	before := p.queued()
	dead := p.sweep()
	if len(dead) > 0 {
		p.mu.Unlock()
		p.tellAll(dead)
		p.mu.Lock()
	}
	if len(dead) > 0 || p.queued() < before { // nobody is told of a call whose caller has left
		if p.closed == 0 && p.accept(e, lv, mayWait) {
			return nil
		}
	}
	if reason := p.closed; reason != 0 {
		p.mu.Unlock()
		return p.refuse(reason)
	}
	reason := p.tooLate(ctx, lv)
	if !mayWait {
		reason = p.fullness(lv)
	}
	if reason != 0 {
		p.mu.Unlock()
		if n != nil && n.call == nil {
			p.notes.Put(n)
		}
		return p.refuse(reason)
	}
	w := p.enqueue(e, lv)
	p.publish(0)
	p.mu.Unlock()
	return p.await(ctx, w)
}

// accept gives e to an idle worker, or puts it into the queue and sees that a
// worker comes for it; then it unlocks. It returns false, still locked, if there
// is no room.
func (p *Pool) accept(e entry, lv int, mayWait bool) bool {
	for i := range lv + 1 {
		if p.waiting[i].head != nil { // they came first
			return false
		}
	}
	free := max(p.limit-p.active, 0)
	if free > 0 && p.state.Load()&waking == 0 && p.queued() == 0 {
		p.accepted++
		p.hand(e, lv)
		return true
	}
	if mayWait && p.short.Load() && p.queued() > 0 {
		free = 0 // a worker comes for those; better to wait for it than to push at its pace
	}
	if !p.push(e, lv, free) {
		return false
	}
	p.wakeAndUnlock()
	return true
}

// push puts e into its ring if there is room, a place for each worker that is
// free included. The caller holds the lock.
func (p *Pool) push(e entry, lv, free int) bool {
	if p.used.Load()&(1<<lv) == 0 {
		p.use(lv)
	}
	if room, exact := p.room(lv); exact {
		return p.rings[lv].Push(e, room+free)
	}
	for {
		if ok, alone := p.pushBeside(e, lv, free); ok || alone {
			return ok
		}
		runtime.Gosched()
	}
}

// tooLate is why a job that would have to wait for room would do so in vain, or
// zero. The caller holds the lock.
func (p *Pool) tooLate(ctx context.Context, lv int) spillway.Reason {
	cost := p.cost.Load()
	if cost == 0 {
		return 0
	}
	n := p.ahead(lv)
	for i := range lv + 1 {
		n += p.waiting[i].n
	}
	if reason := p.hopeless(ctx, n+1); reason != 0 {
		return reason
	}
	forRoom := time.Duration(cost * int64(n+1-int(p.rooms[lv].Load())))
	if p.cfg.MaxWait > 0 && forRoom > p.cfg.MaxWait {
		return spillway.WaitTooLong
	}
	return 0
}
