package debugpage

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// sections makes every part of the page. The set of parts never changes.
func sections(views []view, now time.Time) []section {
	all := []section{
		part("summary", func(m *markup) { m.put(`<p id="summary" role="status">%v</p>`, summary(views)) }),
		part("clock", func(m *markup) {
			m.put(`<time id="clock">%v</time>`, now.UTC().Format("15:04:05 UTC"))
		}),
		part("overview", func(m *markup) { m.overview(views) }),
		part("dry-run", func(m *markup) { m.dryRun(views) }),
	}
	for i := range views {
		all = append(all, part(views[i].id, func(m *markup) { m.limiter(&views[i]) }))
	}
	return all
}

func part(id string, fill func(*markup)) section {
	var m markup
	fill(&m)
	return section{id: id, html: m.String()}
}

// document is the whole page. Without its script it reloads itself.
func (m *markup) document(all []section) {
	m.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Spillway</title>
<link rel="icon" href="data:,">
<noscript><meta http-equiv="refresh" content="5"></noscript>
<style>%v</style>
</head>
<body>
<header><h1>Spillway</h1>%v<p class="live"><span id="link">as of</span> %v <button id="pause" type="button" hidden>Pause</button></p></header>
<main>
`, safe(style), safe(all[0].html), safe(all[1].html))
	for _, s := range all[2:] {
		m.put("%v\n", safe(s.html))
	}
	m.put(`</main>
<footer><p>Figures a second are means of the last ten seconds; counts are from when the limiter was made. <a href="?format=json">The same as JSON</a></p></footer>
<script>%v</script>
</body>
</html>
`, safe(script))
}

// overview has a line for each limiter, if there are several.
func (m *markup) overview(views []view) {
	m.put(`<section id="overview" aria-label="All limiters"%v>`, safe(hidden(len(views) < 2)))
	if len(views) >= 2 {
		m.put(`<ul class="index">`)
		for _, v := range views {
			m.put(`<li><a href="#%v"><bdi>%v</bdi></a><span class="badge %v">%v</span><span class="note">%v of %v in flight, %v waiting</span></li>`,
				v.id, v.title, v.found[0].mood, v.found[0].word, count(v.InFlight), count(v.Limit), count(v.Queued))
		}
		m.put(`</ul>`)
	}
	m.put(`</section>`)
}

func hidden(yes bool) string {
	if yes {
		return ` hidden=""`
	}
	return ""
}

// limiter is the section of one limiter.
func (m *markup) limiter(v *view) {
	m.put(`<section id="%v" class="card" aria-labelledby="%v-name">`, v.id, v.id)
	m.put(`<h2 id="%v-name"><bdi>%v</bdi> <span class="badge %v">%v</span></h2>`, v.id, v.title, v.found[0].mood, v.found[0].word)
	m.advice(v)
	m.put(`<p class="state note">%v</p>`, sentence(v.State))
	m.put(`<p class="note">Law: %v. Mode: %v.`, v.Law, v.Mode)
	if !v.open {
		m.put(` The intake is closed.`)
	}
	if p := v.Pressure; p.Signal != "" {
		m.put(` Signal %v at %v of its bound`, p.Signal, percent(p.Level, 1))
		if p.Cap > 0 {
			m.put(`; %v holds the limit at %v or below`, p.By, count(p.Cap))
		}
		m.put(`.`)
	}
	if p := v.Processors; p.Wait > p.Bound/2 {
		m.put(` Requests wait %v for a processor before any code sees them.`, span(p.Wait))
	}
	m.put(`</p>`)
	if v.Mode == limiter.Off {
		m.put(`<p class="note">Everything is admitted and nothing is counted; the figures are from before.</p>`)
	}
	m.figures(v)
	m.kindTable(v)
	m.charts(v)
	m.put(`<div class="tables">`)
	m.put(`<div>`)
	m.priorityTable(v)
	m.leaks(v)
	m.put(`</div><div>`)
	m.reasonTable(v)
	m.timeTable(v)
	m.put(`</div><div>`)
	m.decisions(v)
	m.put(`</div></div></section>`)
}

// advice says what to do about the first findings.
func (m *markup) advice(v *view) {
	const mostFindings = 3
	for i, f := range v.found[:min(len(v.found), mostFindings)] {
		if f.todo == "" {
			continue
		}
		m.put(`<p class="todo">`)
		if i > 0 { // the headline has said the first
			m.put(`<b>%v</b> `, sentence(f.word))
		}
		m.put(`What to do: %v <a href="%v">The runbook</a></p>`, f.todo, runbook+"#"+f.see)
	}
}

// noEnd is the highest demand, from which nothing is done.
const noEnd = 100

// times formats a multiple.
func times(f float64) string { return fmt.Sprintf("%.2g×", f) }

// figures are the main figures.
func (m *markup) figures(v *view) {
	put := func(name, value, note string) {
		m.put(`<div><dt>%v</dt><dd><b>%v</b> <small>%v</small></dd></div>`, name, value, note)
	}
	m.put(`<dl class="figures">`)
	others := ""
	for _, part := range []struct {
		n    int
		word string
	}{{v.LongInFlight, "long"}, {v.Paused, "waiting for clients"}, {v.Parked, "parked"}} {
		if part.n > 0 {
			others += ", and " + count(part.n) + " " + part.word
		}
	}
	put("In flight", count(v.InFlight), "of "+count(v.Limit)+" slots"+others)
	put("Waiting", count(v.Queued), "")
	name, refused := "Refused", v.rejected
	if v.Mode == limiter.DryRun {
		name, refused = "Would be refused", v.would
	}
	put(name, rate(refused), percent(refused, v.offered)+" of "+rate(v.offered))
	late := ""
	if bad := v.share(limit.Failed) + v.share(limit.Deadline) + v.share(limit.Canceled) + v.share(limit.Overload); bad > 0 {
		late = percent(bad, 1) + " of it failed or lost"
	}
	put("Ended", rate(v.completed), late)
	wait, service, note := v.wait, v.service, strings.TrimPrefix(v.since(), "in the ")
	if service.Count() == 0 {
		wait, service, note = v.QueueWait, v.Service, "since the start"
	}
	put("Wait, p99", quantile(wait, .99), note)
	put("Work, p99", quantile(service, .99), note)
	put("Oldest in flight", span(v.OldestInFlight), v.OldestKind)
	switch {
	case v.Demand >= noEnd:
		put("Demand", "no end", "work comes and none is done")
	default:
		put("Demand", times(v.Demand), "of what can be served")
	}
	m.put(`</dl>`)
}

func quantile(h *histogram.Histogram, q float64) string {
	if h == nil || h.Count() == 0 {
		return "–"
	}
	return span(time.Duration(h.Quantile(q)))
}

// charts show the last two minutes.
func (m *markup) charts(v *view) {
	whole := func(f float64) string {
		if math.IsNaN(f) {
			return "–"
		}
		return number(uint64(math.Round(f)))
	}
	duration := func(f float64) string {
		if math.IsNaN(f) {
			return "–"
		}
		return span(time.Duration(f))
	}
	now := func(of func(*picture) int) []float64 {
		return v.watch.series(func(s, _ *sample) float64 { return float64(of(&s.picture)) })
	}
	grown := func(of func(*picture) uint64) []float64 {
		return v.watch.series(func(s, before *sample) float64 {
			if before == nil {
				return math.NaN()
			}
			return float64(minus(of(&s.picture), of(&before.picture))) / s.at.Sub(before.at).Seconds()
		})
	}
	tail := func(of func(*sample) *histogram.Histogram) []float64 {
		return v.watch.series(func(s, _ *sample) float64 {
			if h := of(s); h != nil && h.Count() > 0 {
				return float64(h.Quantile(.99))
			}
			return math.NaN()
		})
	}
	m.put(`<h3>Last two minutes</h3><div class="charts">`)
	m.chart("Slots", 1, whole,
		line{"c1 filled", "in flight", now(func(p *picture) int { return p.InFlight })},
		line{"c2", "limit", now(func(p *picture) int { return p.Limit })})
	m.chart("Waiting", 1, whole, line{"c3 filled", "callers", now(func(p *picture) int { return p.Queued })})
	refused := line{"c4", "refused", grown(func(p *picture) uint64 { return p.Rejected })}
	if len(v.WouldRejectBy) > 0 && len(v.RejectedBy) == 0 {
		refused = line{"c4", "would be refused", grown(func(p *picture) uint64 { return p.WouldReject })}
	}
	m.chart("Arrivals a second", 1, rate, line{"c1 filled", "offered", grown(func(p *picture) uint64 { return p.Offered })}, refused)
	m.chart("Times, p99", float64(time.Millisecond), duration,
		line{"c1", "work", tail(func(s *sample) *histogram.Histogram { return s.service })},
		line{"c3", "wait", tail(func(s *sample) *histogram.Histogram { return s.wait })})
	m.put(`</div>`)
}
