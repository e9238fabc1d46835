package debugpage

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// countsAt is what was counted by kind at a time.
type countsAt struct {
	at time.Time
	by map[string]limiter.KindStats
}

// kindsEvery is the time between two countsAt. Two minutes by kind are true within that time.
const kindsEvery = 10 * time.Second

// addKinds remembers the counts by kind, and forgets those of more than two minutes ago.
func (w *watch) addKinds(now time.Time, by map[string]limiter.KindStats) {
	if n := len(w.byKind); n == 0 || now.Sub(w.byKind[n-1].at) >= kindsEvery {
		w.byKind = append(w.byKind, countsAt{now, by})
	}
	drop := 0
	for now.Sub(w.byKind[drop].at) > kept*interval {
		drop++
	}
	w.byKind = slices.Delete(w.byKind, 0, drop)
}

// kindView is one kind of work. Its counts and times are of some recent time.
type kindView struct {
	name                         string
	inFlight, parked             int
	ended, failed, lost, refused uint64
	service                      *histogram.Histogram
	before                       *histogram.Histogram // times until two minutes ago; nil: none
}

// work is how many pieces of work of the kind ended or run.
func (k *kindView) work() float64 { return float64(k.ended + uint64(k.inFlight+k.parked)) }

// slower reports whether half of the work takes three times as long as a quarter of it did before. A
// trouble of some time is already among the times before.
func (k *kindView) slower() bool {
	return k.before != nil && k.before.Count() >= manyEnds && k.service.Count() >= manyEnds && k.service.Quantile(.5) > 3*k.before.Quantile(.25)
}

// title is the name of the kind in the page.
func (k *kindView) title() string { return cmp.Or(withoutDirections(k.name), "other work") }

// withoutDirections removes the characters that turn the direction of the text around them, which is ours.
func withoutDirections(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, s)
}

// kindsSince lists the kinds that hold slots or were active since a time, those with most slots first. If that
// time is not known, it is the earliest that is.
func (w *watch) kindsSince(at time.Time) (all []kindView) {
	if len(w.byKind) == 0 {
		return nil
	}
	from := w.byKind[0].by
	for _, c := range w.byKind {
		if !c.at.After(at) {
			from = c.by
		}
	}
	for name, k := range w.now.ByKind {
		before := from[name]
		v := kindView{name: name, inFlight: k.InFlight, parked: k.Parked, refused: minus(k.Rejected, before.Rejected), service: since(before.Service, k.Service), before: w.byKind[0].by[name].Service}
		for o, n := range k.Ended {
			n = minus(n, before.Ended[o])
			v.ended += n
			switch o {
			case limit.Failed:
				v.failed += n
			case limit.Deadline, limit.Canceled, limit.Overload:
				v.lost += n
			}
		}
		if v.inFlight+v.parked > 0 || v.ended+v.refused > 0 {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b kindView) int {
		return cmp.Or(b.inFlight+b.parked-a.inFlight-a.parked, cmp.Compare(b.ended+b.refused, a.ended+a.refused), cmp.Compare(a.name, b.name))
	})
	return all
}

// mostKinds is how many kinds the table has.
const mostKinds = 12

// kindTable shows which work holds the slots, fails or is refused. There is none while no work has a kind.
func (m *markup) kindTable(v *view) {
	if len(v.kinds) == 0 || len(v.kinds) == 1 && v.kinds[0].name == "" {
		return
	}
	m.put(`<div class="kinds">`)
	m.table(v.id+"-kinds", "By kind of work, "+v.since(), "kind", "slots now", "p50", "p99", "failed", "lost", "refused")
	for i := range v.kinds {
		if i == mostKinds {
			m.put(`<tr><td colspan="7">and %v more</td></tr>`, count(len(v.kinds)-mostKinds))
			break
		}
		k := &v.kinds[i]
		slots := count(k.inFlight)
		if k.parked > 0 {
			slots += " and " + count(k.parked) + " parked"
		}
		m.put(`<tr><th scope="row"><code class="site">%v</code></th><td>%v</td><td>%v</td><td>%v</td><td>%v</td><td>%v</td><td>%v</td></tr>`, k.title(), slots,
			quantile(k.service, .5), quantile(k.service, .99), shareOf(k.failed, k.ended), shareOf(k.lost, k.ended), shareOf(k.refused, k.ended+k.refused))
	}
	m.endTable()
	m.put(`</div>`)
}

// shareOf is a share, or a dash if there is none.
func shareOf(n, of uint64) string {
	if n == 0 {
		return "–"
	}
	return percent(float64(n), float64(of))
}
