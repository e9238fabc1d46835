package budget

import (
	"maps"
	"slices"
)

// The steps of replicas in groups, in the world of the simulation.

// get reads a value, and put writes one, with the steps of a real request.
func (n *simNode) get(key string, then func(State, int)) {
	attempt := n.attempt
	n.reaches(func() {
		v := n.w.store.values[key]
		n.hears(attempt, func() { then(v.State, v.revision) })
	})
}

func (n *simNode) put(key string, next State, revision int, then func(won bool)) {
	attempt := n.attempt
	text := next.Encode()
	n.reaches(func() {
		won := n.w.store.values[key].revision == revision
		if won {
			s, err := Parse(text)
			if err != nil {
				n.w.t.Fatal(err)
			}
			n.w.store.values[key] = simValue{s, revision + 1}
		}
		n.hears(attempt, func() { then(won) })
	})
}

// place is Member.place.
func (n *simNode) place() {
	again := func(bool) { n.ask() }
	n.get(FirstGroup, func(first State, revision int) {
		switch {
		case first.Seq == 0 && revision > 0 && len(first.Leases) < n.w.alone:
			n.group = FirstGroup
			n.ask()
			return
		case first.Seq == 0 && revision > 0:
			n.put(FirstGroup, first.Split(), revision, again)
			return
		}
		isNew := revision == 0
		n.get(simRoot, func(root State, revision int) {
			if isNew && revision == 0 {
				n.group = FirstGroup
				n.ask()
				return
			}
			next := root
			if revision == 0 {
				next, _, _ = root.Visit(FirstGroup, simTTL, first)
			}
			open := next.Open(n.w.most, n.full)
			if len(open) > 0 && revision > 0 {
				n.group = open[n.w.r.IntN(len(open))]
				n.Enter(root)
				n.ask()
				return
			}
			if len(open) == 0 {
				next = next.Grow(simTTL)
			}
			n.put(simRoot, next, revision, again)
		})
	})
}

// visit is Member.visit. An attempt that ends during a visit was not in vain.
func (n *simNode) visit() {
	if !n.DueVisit() {
		n.lookAfter()
		return
	}
	n.get(simRoot, func(root State, revision int) {
		next, missing := n.Visit(root, n.group)
		n.put(simRoot, next, revision, func(won bool) {
			if !won {
				n.visit()
				return
			}
			for _, id := range missing {
				if n.orphans[id] == nil {
					n.orphans[id] = NewHolder(Terms{})
				}
			}
			if n.Visited() {
				n.urgent = true
				n.ask()
			} else {
				n.lookAfter()
			}
		})
	})
}

// lookAfter is Member.lookAfter, for one orphan.
func (n *simNode) lookAfter() {
	ids := slices.Sorted(maps.Keys(n.orphans))
	if len(ids) == 0 {
		n.end(true)
		return
	}
	id := ids[0]
	done := func(bool) { n.end(true) }
	n.get(id, func(s State, revision int) {
		was := len(s.Leases)
		if s = n.orphans[id].Expire(n.clock(), s); len(s.Leases) == was && was > 0 {
			n.end(true)
			return
		}
		if len(s.Leases) > 0 {
			n.put(id, s, revision, done)
			return
		}
		n.get(simRoot, func(root State, at int) {
			account := root.Of(id)
			s, retired := s.Retire(account)
			switch {
			case account.Token == 0:
				delete(n.orphans, id)
				n.end(true)
			case retired:
				delete(n.orphans, id)
				n.put(simRoot, root.Leave(id), at, done)
			default:
				n.put(id, s, revision, done)
			}
		})
	})
}

// checkGroups checks that the accounts sum to at most the total, and that a group's Totals and leases
// are at most its account.
func (w *world) checkGroups() {
	root := w.store.values[simRoot]
	for id, v := range w.store.values {
		if free := v.Free(Slots); free < 0 && (id == simRoot || v.Seq == 0) {
			w.t.Fatalf("%v: %s: %d more are leased than there are", w.now, id, -free)
		}
		if leased := v.Totals[Slots] - min(v.Free(Slots), 0); id != simRoot && root.revision > 0 && leased > root.Of(id).Has[Slots] {
			w.t.Fatalf("%v: group %s has %d of %d, %+v, %+v", w.now, id, leased, root.Of(id).Has[Slots], v, root)
		}
	}
}
