package workerpool

import "time"

// beat is the longest interval between looks of a pool that has workers.
const beat = 50 * time.Millisecond

// upkeep is the pool's periodic upkeep: it measures, grows, retires idle workers and removes
// cancelled jobs. upkeep schedules no further one when the pool is idle.
func (p *Pool) upkeep() {
	now := p.now()
	p.ctl.update(now)
	p.unswept.Store(true)
	if pic := p.queue.Picture(); pic.Full || sum(pic.Waiting) > 0 {
		p.sweep()
	}
	p.queue.Flush()
	p.ctl.retire(now, p.cfg.IdleTimeout)

	p.beatMu.Lock()
	defer p.beatMu.Unlock()
	// A called worker does not arm while beating is set; quiet sees the job that the worker was
	// called for.
	p.beating.Store(false)
	if !p.ctl.quiet() {
		p.rearm()
	}
}

// arm schedules the next upkeep, unless one is scheduled.
func (p *Pool) arm() {
	if p.beating.Load() {
		return
	}
	p.beatMu.Lock()
	defer p.beatMu.Unlock()
	if !p.beating.Load() {
		p.rearm()
	}
}

// rearm sets the timer, unless the pool is closed. The caller holds beatMu.
func (p *Pool) rearm() {
	if p.closedFor.Load() != 0 {
		return
	}
	p.beating.Store(true)
	if p.timer == nil {
		p.timer = time.AfterFunc(p.beat, p.upkeep)
	} else {
		p.timer.Reset(p.beat)
	}
}
