package debugpage

import (
	"html"
	"slices"
	"strings"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/limit"
)

// table begins a table with a title and named columns; endTable ends it. A table that is too wide
// for its place scrolls.
func (m *markup) table(id, title string, columns ...string) {
	m.put(`<div><h3 id="%v">%v</h3><div class="scroll"><table aria-labelledby="%v"><thead><tr>`, id, title, id)
	for _, c := range columns {
		if c == "" {
			m.put(`<td></td>`)
		} else {
			m.put(`<th scope="col">%v</th>`, c)
		}
	}
	m.put(`</tr></thead><tbody>`)
}

func (m *markup) endTable() { m.put(`</tbody></table></div></div>`) }

// priorityTable has a column for each priority: there are few priorities, and a phone is narrow.
func (m *markup) priorityTable(v *view) {
	all := priorities(v.ByPriority)
	if len(all) == 0 {
		return
	}
	columns := []string{""}
	for _, p := range all {
		columns = append(columns, p.String())
	}
	m.table(v.id+"-priorities", "By priority, since the limiter was made", columns...)
	row := func(name string, of func(spillway.Priority) string) {
		m.put(`<tr><th scope="row">%v</th>`, name)
		for _, p := range all {
			m.put(`<td>%v</td>`, of(p))
		}
		m.put(`</tr>`)
	}
	row("waiting", func(p spillway.Priority) string { return count(v.ByPriority[p].Queued) })
	row("in flight", func(p spillway.Priority) string { return count(v.ByPriority[p].InFlight) })
	row("offered", func(p spillway.Priority) string { return number(v.ByPriority[p].Offered) })
	row("admitted", func(p spillway.Priority) string { return number(v.ByPriority[p].Admitted) })
	row("refused", func(p spillway.Priority) string { return number(v.ByPriority[p].Rejected) })
	row("refused share", func(p spillway.Priority) string {
		return percent(float64(v.ByPriority[p].Rejected), float64(v.ByPriority[p].Offered))
	})
	row("cancelled", func(p spillway.Priority) string { return number(v.ByPriority[p].Cancelled) })
	if v.WouldReject > 0 {
		row("would be refused", func(p spillway.Priority) string { return number(v.ByPriority[p].WouldReject) })
	}
	m.endTable()
}

// reasonTable lists the reasons of refusals.
func (m *markup) reasonTable(v *view) {
	all := reasonsOf(v.RejectedBy)
	if len(all) == 0 {
		m.put(`<div><h3>Refusals by reason</h3><p class="note">Nothing was refused.</p></div>`)
		return
	}
	m.table(v.id+"-reasons", "Refusals by reason", "reason", "now", "in all")
	for _, r := range all {
		m.reasonRow(r, v.rejectedBy, v.RejectedBy[r])
	}
	m.endTable()
}

// timeTable has quantiles of wait and service times.
func (m *markup) timeTable(v *view) {
	m.table(v.id+"-times", "Times", "", "p50", "p90", "p99", "max")
	part := func(title string, wait, service *histogram.Histogram) {
		m.put(`<tr><th class="part" colspan="5">%v</th></tr>`, title)
		row := func(name string, h *histogram.Histogram) {
			m.put(`<tr><th scope="row">%v</th><td>%v</td><td>%v</td><td>%v</td><td>%v</td></tr>`,
				name, quantile(h, .5), quantile(h, .9), quantile(h, .99), quantile(h, 1))
		}
		row("wait", wait)
		row("work", service)
	}
	part(v.since(), v.wait, v.service)
	part("since the limiter was made", v.QueueWait, v.Service)
	m.endTable()
}

// decisions lists the last changes of the limit, the latest first.
func (m *markup) decisions(v *view) {
	m.put(`<div><h3>Last changes of the limit</h3>`)
	if len(v.Decisions) == 0 {
		m.put(`<p class="note">None yet.</p></div>`)
		return
	}
	m.put(`<ol class="log">`)
	for _, d := range slices.Backward(v.Decisions) {
		m.put(`<li><span class="step">%v to %v</span> <small>%v</small> <span class="why">%v</span></li>`, count(d.From), count(d.To), ago(v.age(d.At)), because(d))
	}
	m.put(`</ol></div>`)
}

func because(d limit.Decision) string {
	if strings.TrimSpace(d.Why) == "" {
		return "for no stated reason"
	}
	return d.Why
}

// leaks lists the permits that did not end in time.
func (m *markup) leaks(v *view) {
	if v.Leaked == 0 && len(v.Leaks) == 0 {
		return
	}
	m.table(v.id+"-leaks", "Permits not ended in time: "+number(v.Leaked)+" in all", "acquired at", "priority", "kind", "age")
	const most = 10
	for i, l := range v.Leaks {
		if i == most {
			m.put(`<tr><td colspan="4">and %v more</td></tr>`, count(len(v.Leaks)-most))
			break
		}
		m.put(`<tr><th scope="row"><code class="site">%v</code></th><td>%v</td><td>%v</td><td>%v</td></tr>`, l.Site, l.Priority, l.Kind, span(l.Age))
	}
	m.endTable()
}

// reasonRow is a reason, its meaning, its recent rate and its count.
func (m *markup) reasonRow(r spillway.Reason, late map[spillway.Reason]float64, n uint64) {
	now := "–"
	if late != nil {
		now = rate(late[r])
	}
	name := strings.ReplaceAll(html.EscapeString(r.String()), "_", "_<wbr/>") // permits line breaks there
	m.put(`<tr><th scope="row"><code>%v</code></th><td>%v</td><td>%v</td></tr><tr class="more"><td colspan="3"><small>%v</small></td></tr>`, safe(name), now, number(n), meaning(r))
}
