package sim

import (
	"slices"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// after calls do after d. If do is about a replica, it must first check replica.life: the replica
// may have ended or restarted meanwhile.
func (r *run) after(d time.Duration, do func()) {
	r.plans = append(r.plans, do)
	r.events.add(r.now+d, planned, nil, uint32(len(r.plans)-1))
}

// apply makes a change of the scenario.
func (r *run) apply(c Change) {
	some := r.chosen(c)
	for _, rep := range some {
		if c.Slots > 0 {
			rep.slots = c.Slots
		}
		if c.Speed > 0 {
			rep.speed = c.Speed
		}
		rep.retune()
		if o, ok := rep.policy.(*oracle); ok { // an oracle knows of the change at once
			o.dispatch()
		}
	}
	switch {
	case c.Stop:
		r.stop(some)
	case c.Start:
		for _, rep := range some {
			r.start(rep)
		}
	case c.Restart > 0:
		r.restart(some, c.Restart)
	}
}

func (r *run) chosen(c Change) (some []*replica) {
	for i := range r.replicas {
		if c.Zone > 0 && i%r.sc.Fleet.Zones != c.Zone-1 {
			continue
		}
		if some = append(some, &r.replicas[i]); len(some) == c.Count {
			break
		}
	}
	return some
}

// stop ends replicas. The balancer notices after Fleet.Notice.
func (r *run) stop(some []*replica) {
	r.kill(some)
	for _, rep := range some {
		life := rep.life
		r.after(r.sc.Fleet.Notice, func() {
			if rep.life == life {
				r.rotation.remove(rep)
			}
		})
	}
}

// kill ends replicas. All their calls are lost.
func (r *run) kill(some []*replica) {
	for _, rep := range some {
		if rep.alive {
			rep.alive = false
			rep.life++
			r.events.disarm(rep.n)
		}
	}
	for _, slab := range r.slabs {
		for i := range slab {
			if c := &slab[i]; c.state != fresh && !c.replica.alive {
				r.lose(c)
			}
		}
	}
}

// lose ends a call whose replica is gone.
func (r *run) lose(c *call) {
	if c.state == running {
		r.inBackend--
	}
	switch {
	case !c.left:
		r.broken(c)
		return
	case c.tally == nil:
	case c.state == running:
		c.tally.Late++
		c.tally.Latency.Record(int64(r.now - c.at))
	default:
		r.gone(c)
	}
	r.recycle(c)
}

// broken ends an attempt whose connection breaks or cannot be made. The caller may retry.
func (r *run) broken(c *call) {
	if t := c.tally; t != nil {
		t.Failed++
		t.Latency.Record(int64(r.now - c.at))
	}
	r.ending(c, limit.Failed)
	r.retry(c, 0)
	r.recycle(c)
}

// start brings back a replica that has ended.
func (r *run) start(rep *replica) {
	if rep.alive {
		return
	}
	f := &r.sc.Fleet
	rep.warmth = f.Cold
	if f.Warm == 0 {
		rep.warmth = 1
	}
	_ = rep.begin() // setUp has built the same policy without an error
	rep.fullAt = r.now + f.SlowStart
	if rep.index < 0 {
		r.rotation.add(rep)
	}
	if rep.warmth < 1 {
		r.warm(rep, 1)
	}
}

// warmSteps is the number of steps in which the speed rises to 1.
const warmSteps = 20

func (r *run) warm(rep *replica, step int) {
	f, life := &r.sc.Fleet, rep.life
	r.after(f.Warm/warmSteps, func() {
		if rep.life != life {
			return
		}
		rep.warmth = f.Cold + (1-f.Cold)*float64(step)/warmSteps
		rep.retune()
		if step < warmSteps {
			r.warm(rep, step+1)
		}
	})
}

// restart replaces replicas, batch at a time.
func (r *run) restart(some []*replica, batch int) {
	f, wait := &r.sc.Fleet, time.Duration(0)
	for group := range slices.Chunk(some, batch) {
		r.after(wait, func() { r.replace(group) })
		wait += f.Drain + f.Boot
	}
}

// replace drains replicas, ends them and starts new ones.
func (r *run) replace(group []*replica) {
	f := &r.sc.Fleet
	group = slices.DeleteFunc(slices.Clone(group), func(rep *replica) bool { return !rep.alive })
	lives := make([]uint32, len(group))
	for i, rep := range group {
		r.rotation.remove(rep)
		lives[i] = rep.life
	}
	r.after(f.Drain, func() {
		var ended []*replica
		for i, rep := range group {
			if rep.life == lives[i] {
				ended = append(ended, rep)
			}
		}
		r.kill(ended)
		for _, rep := range ended {
			life := rep.life
			r.after(f.Boot, func() {
				if rep.life == life {
					r.start(rep)
				}
			})
		}
	})
}
