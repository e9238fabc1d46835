package gate

import (
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/limit"
)

// Tally counts how the work of one kind ended, for reports. The kinds of all priorities that share a name
// share a tally. Work without a kind of its own is in the first tally, whose name is empty. No tally is
// ever given to another name, so that no count falls.
type Tally struct {
	Name     string // never changes
	InFlight int    // slots in use
	Parked   int    // set by Tallies
	Rejected uint64
	Ended    [8]uint64 // ends of admitted work, by outcome
	// Service has the times of ended work from the admission to the end, in nanoseconds. Long work and
	// work of outcome [limit.Unknown] are left out.
	Service histogram.Histogram
}

// mostTallies is how many kinds are told apart in reports, and bounds the labels of metrics. A gate
// distinguishes fewer kinds at a time (see places).
const mostTallies = 33

// tallies are all tallies of a gate.
type tallies struct {
	first Tally    // of work without a kind of its own
	named []*Tally // by the order of their first work
	// alone keeps all work in the first tally. A tally takes some kilobytes, which a family of
	// limiters with many kinds each has no room for.
	alone bool
}

// find returns the tally of a name. Names beyond the bound share the first tally.
func (t *tallies) find(name string) *Tally {
	if name == "" || t.alone {
		return &t.first
	}
	for _, of := range t.named {
		if of.Name == name {
			return of
		}
	}
	if len(t.named) == mostTallies-1 {
		return &t.first
	}
	of := &Tally{Name: name}
	t.named = append(t.named, of)
	return of
}

// all yields all tallies, the first one first.
func (t *tallies) all(yield func(*Tally) bool) {
	if !yield(&t.first) {
		return
	}
	for _, of := range t.named {
		if !yield(of) {
			return
		}
	}
}

// count enters the end of work.
func (t *Tally) count(o limit.Outcome) { t.Ended[o%8]++ } // without a check of bounds

// rejectedOf counts n refusals for the kind in a place.
func (g *Gate) rejectedOf(kind uint8, n uint64) {
	g.service.kinds.list[kind].tally.Rejected += n
}

// Holder returns the kind that holds most slots, and how many.
func (g *Gate) Holder() (name string, slots int) {
	for t := range g.tallies.all {
		if t.InFlight > slots {
			name, slots = t.Name, t.InFlight
		}
	}
	return name, slots
}

// TallyAlone counts the work of all kinds together from now on. Call TallyAlone before the first arrival.
func (g *Gate) TallyAlone() { g.tallies.alone = true }

// TallyOf returns the name of the tally of running work. It needs no lock.
func (g *Gate) TallyOf(w *Grant) string { return w.tally.Name }

// NameOf returns the name of the kind of running work, also if its tally has none.
func (g *Gate) NameOf(w *Work) string { return g.service.kinds.list[w.Kind].name }

// Tallies returns copies of all tallies, the one without a name first. Refusals whose kind is not known
// are in the first one. Its Rejected may run ahead of Counts by the refusals that are being repeated.
func (g *Gate) Tallies() []Tally {
	known, c, parked := uint64(0), g.Counts(), g.ParkedBy()
	list := make([]Tally, 0, 1+len(g.tallies.named))
	for t := range g.tallies.all {
		copied := *t
		copied.Parked, copied.Service = parked[t.Name], *t.Service.Clone()
		list = append(list, copied)
		known += t.Rejected
	}
	first, all := &g.tallies.first, c.Rejected()
	known -= first.Rejected
	first.Rejected = max(first.Rejected, all-min(known, all))
	list[0].Rejected = first.Rejected
	return list
}

// ParkedBy returns how many pieces of work are parked, by the names of their tallies.
func (g *Gate) ParkedBy() map[string]int {
	by := map[string]int{}
	for i := range g.service.kinds.list {
		if k := &g.service.kinds.list[i]; k.parked.now > 0 {
			by[k.tally.Name] += int(k.parked.now)
		}
	}
	return by
}
