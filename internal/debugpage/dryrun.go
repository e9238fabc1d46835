package debugpage

import (
	"github.com/spillway-go/spillway/limiter"
)

// dryRun is the report: the refusals that enforcing would have caused, and how far to trust the
// estimate. It covers limiters in a dry run, and limiters that had one.
func (m *markup) dryRun(views []view) {
	var all []view
	for _, v := range views {
		if v.Mode == limiter.DryRun || v.WouldReject > 0 {
			all = append(all, v)
		}
	}
	m.put(`<section id="dry-run" class="card" aria-labelledby="dry-run-name"%v>`, safe(hidden(len(all) == 0)))
	m.put(`<h2 id="dry-run-name">Dry run</h2>`)
	if len(all) > 0 {
		m.put(`<p class="state">A dry run admits everything. This is what would have been refused.</p>`)
	}
	for _, v := range all {
		m.dryRunOf(&v)
	}
	m.put(`</section>`)
}

func (m *markup) dryRunOf(v *view) {
	m.put(`<article aria-labelledby="dry-%v"><h3 id="dry-%v"><bdi>%v</bdi></h3>`, v.id, v.id, v.title)
	m.put(`<p class="answer"><b>%v</b> of the work: %v of %v that came since the limiter was made. Now %v of %v.</p>`,
		percent(float64(v.WouldReject), float64(v.Offered)), number(v.WouldReject), number(v.Offered), rate(v.would), rate(v.offered))
	switch {
	case v.Mode != limiter.DryRun:
		m.put(`<p class="trust">The limiter is in mode %v: these are counts of a dry run before, or of work that is only decided and not enforced.</p>`, v.Mode)
	case v.EstimateUnsafe:
		m.put(`<p class="trust unsafe"><strong>Do not trust this estimate.</strong> %v The counts say nothing: enforce for all callers of one replica to find out.</p>`, sentence(v.Estimate))
	default:
		m.put(`<p class="trust">%v</p>`, sentence(v.Estimate))
	}
	if v.WouldReject > 0 {
		m.put(`<div class="tables"><div>`)
		m.wouldByPriority(v)
		m.put(`</div><div>`)
		m.wouldByReason(v)
		m.put(`</div></div>`)
	}
	m.put(`</article>`)
}

func (m *markup) wouldByPriority(v *view) {
	m.table("dry-"+v.id+"-priorities", "Would be refused, by priority", "priority", "came", "refused", "share")
	for _, p := range priorities(v.ByPriority) {
		s := v.ByPriority[p]
		m.put(`<tr><th scope="row">%v</th><td>%v</td><td>%v</td><td>%v</td></tr>`,
			p, number(s.Offered), number(s.WouldReject), percent(float64(s.WouldReject), float64(s.Offered)))
	}
	m.endTable()
}

func (m *markup) wouldByReason(v *view) {
	m.table("dry-"+v.id+"-reasons", "Would be refused, by reason", "reason", "now", "in all")
	for _, r := range reasonsOf(v.WouldRejectBy) {
		m.reasonRow(r, v.wouldBy, v.WouldRejectBy[r])
	}
	m.endTable()
}
