package workerpool

// sweeps is how often a full pool looks for queued jobs whose contexts have
// ended without finding one, before it waits for more refusals.
const sweeps = 8

// nothingStale reports whether a sweep would probably find nothing.
func (p *Pool) nothingStale() bool { return p.stale.Load() <= 0 && p.tries.Load() <= 0 }

// sweep takes the queued jobs out whose contexts have ended or whose callers have
// left, so that they keep no place, and returns those to be told. The others are
// kept in order in front of the rings. The caller holds the lock.
func (p *Pool) sweep() (dead []ended) {
	if !p.nothingStale() && p.queued() == 0 {
		p.tries.Store(0)
	}
	if p.nothingStale() {
		p.publish(0) // asks no more
		return nil
	}
	p.publish(shaky | fronted) // workers come and ask
	stale, left := 0, 0
	for lv := range p.rings {
		all, r := p.front[lv], &p.rings[lv]
		var e entry
		for n := r.Len(); n > 0 && r.SetAside(&e); n-- {
			all = append(all, e)
		}
		kept := all[:0]
		for _, e := range all {
			switch err := e.ctx.Err(); {
			case err == nil:
				kept = append(kept, e)
			case e.call() != nil && !e.call().begin():
				stale++
			default:
				dead = append(dead, ended{entry: e, err: err})
			}
		}
		clear(all[len(kept):])
		if len(kept) == 0 {
			kept = nil
		}
		p.front[lv] = kept
		r.Release(len(all) - len(kept))
		left += len(kept)
	}
	p.inFront = left
	p.stale.Add(int64(-stale))
	p.tally.cancelled.Add(uint64(len(dead)))
	if len(dead)+stale == 0 {
		p.tries.Add(-1)
	}
	p.publish(0)
	return dead
}
