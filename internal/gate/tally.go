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
const mostTallies = 33 // below len(tallies.of)

// tallies are all tallies of a gate. Work that runs knows its tally by the index.
type tallies struct {
	of [64]*Tally // a power of two spares the check of bounds
	n  int
	// alone keeps all work in the first tally. A tally takes some kilobytes, which a family of
	// limiters with many kinds each has no room for.
	alone bool
}

func (t *tallies) at(index uint8) *Tally { return t.of[index%64] }

// find returns the index of the tally of a name. Names beyond the bound share the first tally.
func (t *tallies) find(name string) uint8 {
	for i := range t.n {
		if t.of[i].Name == name {
			return uint8(i)
		}
	}
	if t.n == mostTallies || t.alone && t.n > 0 {
		return 0
	}
	t.of[t.n] = &Tally{Name: name}
	t.n++
	return uint8(t.n - 1)
}

// count enters the end of work.
func (t *Tally) count(o limit.Outcome) { t.Ended[o%8]++ } // without a check of bounds

// rejectedOf counts n refusals for the kind in a place.
func (g *Gate) rejectedOf(kind uint8, n uint64) {
	g.tallies.at(g.service.kinds.list[kind].tally).Rejected += n
}

// Holder returns the kind that holds most slots, and how many.
func (g *Gate) Holder() (name string, slots int) {
	for _, t := range g.tallies.of[:g.tallies.n] {
		if t.InFlight > slots {
			name, slots = t.Name, t.InFlight
		}
	}
	return name, slots
}

// TallyAlone counts the work of all kinds together from now on. Call TallyAlone before the first arrival.
func (g *Gate) TallyAlone() { g.tallies.alone = true }

// TallyOf returns the name of the tally of running work. It needs no lock.
func (g *Gate) TallyOf(w *Grant) string { return g.tallies.at(w.tally).Name }

// NameOf returns the name of the kind of running work, also if its tally has none.
func (g *Gate) NameOf(w *Work) string { return g.service.kinds.list[w.Kind].name }

// Tallies returns copies of all tallies, the one without a name first. Refusals whose kind is not known
// are in the first one. Its Rejected may run ahead of Counts by the refusals that are being repeated.
func (g *Gate) Tallies() []Tally {
	known, c := uint64(0), g.Counts()
	for _, t := range g.tallies.of[1:g.tallies.n] {
		known += t.Rejected
	}
	first, all := g.tallies.of[0], c.Rejected()
	first.Rejected = max(first.Rejected, all-min(known, all))
	list, parked := make([]Tally, g.tallies.n), g.ParkedBy()
	for i, t := range g.tallies.of[:g.tallies.n] {
		list[i] = *t
		list[i].Parked, list[i].Service = parked[t.Name], *t.Service.Clone()
	}
	return list
}

// ParkedBy returns how many pieces of work are parked, by the names of their tallies.
func (g *Gate) ParkedBy() map[string]int {
	by := map[string]int{}
	for i := range g.service.kinds.list {
		if k := &g.service.kinds.list[i]; k.parked.now > 0 {
			by[g.tallies.at(k.tally).Name] += int(k.parked.now)
		}
	}
	return by
}
