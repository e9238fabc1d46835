package workerpool

import "time"

// beat is how often a pool that has workers looks at itself, at most.
const beat = 50 * time.Millisecond

// look is the pool's beat: it measures, grows, retires workers that were idle
// for long and takes jobs out that will not run. It ends when the pool is idle.
func (p *Pool) look() {
	now := p.now()
	p.ctl.look(now)
	p.unswept.Store(true)
	if pic := p.queue.Picture(); pic.Full || sum(pic.Waiting) > 0 {
		p.sweep()
	}
	p.queue.Flush()
	p.ctl.retire(now, p.cfg.IdleTimeout)

	p.beatMu.Lock()
	defer p.beatMu.Unlock()
	// A worker that was called and finds that a look is to come does not arm; what
	// it was called for is seen here.
	p.beating.Store(false)
	if !p.ctl.quiet() {
		p.rearm()
	}
}

// arm sees that the pool looks at itself again.
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
		p.timer = time.AfterFunc(p.beat, p.look)
	} else {
		p.timer.Reset(p.beat)
	}
}
