package report

import (
	"strings"
	"unicode/utf8"
)

// table is a header and rows of text. The first Left columns are names, the
// others figures.
type table struct {
	Left   int
	Header []string
	Rows   [][]string
}

func ratesTable(cells []*cell) table {
	t := table{1, []string{"requests a second", "good", "refused", "errors", "timeouts", "sum", "refused share"}, nil}
	for _, c := range cells {
		if !c.sent() {
			continue
		}
		t.Rows = append(t.Rows, []string{
			c.pattern, c.good.or(number), c.refused.orNone(number), c.errors.orNone(number), c.timeouts.orNone(number),
			number(c.total()), c.refusedShare.orNone(percent),
		})
	}
	return t
}

func latencyTable(cells []*cell) table {
	t := table{2, []string{"latency", "of", "min", "mean", "median", "p95", "p99", "max"}, nil}
	for _, c := range cells {
		for _, l := range []struct {
			name string
			*latency
		}{{"good", &c.ok}, {"refused", &c.rejected}} {
			if l.count == 0 {
				continue
			}
			t.Rows = append(t.Rows, []string{
				c.pattern, l.name, l.min.or(nanos), l.mean.or(nanos), l.median.or(nanos), l.p95.or(nanos), l.p99.or(nanos), l.peak.or(nanos),
			})
		}
	}
	return t
}

func processTable(cells []*cell) table {
	t := table{1, []string{"process", "allocs/req", "bytes/req", "goroutines", "peak RSS", "GC of CPU", "true reuse"}, nil}
	for _, c := range cells {
		t.Rows = append(t.Rows, []string{
			c.pattern, c.allocs.or(number), c.bytes.or(size), c.goroutines.or(number), c.rss.or(size), c.gc.or(percent), c.reuse.or(percent),
		})
	}
	return t
}

// table writes aligned columns. Those that do not fit into the width follow
// beneath, with the names repeated.
func (t *terminal) table(tab table) {
	if len(tab.Rows) == 0 {
		return
	}
	widths := make([]int, len(tab.Header))
	for _, row := range append([][]string{tab.Header}, tab.Rows...) {
		for i, s := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(s))
		}
	}
	names := 0
	for i := range tab.Left {
		names += widths[i] + 2
	}
	for from := tab.Left; from < len(tab.Header); {
		to, used := from, names+2
		for to < len(tab.Header) && (to == from || used+widths[to]+2 <= t.Width) {
			used += widths[to] + 2
			to++
		}
		t.say("")
		t.row(tab, tab.Header, widths, from, to, faint)
		for _, row := range tab.Rows {
			t.row(tab, row, widths, from, to, "")
		}
		from = to
	}
}

func (t *terminal) row(tab table, row []string, widths []int, from, to int, code string) {
	var b strings.Builder
	b.WriteString("  ")
	for i := range tab.Left {
		s := clean(row[i])
		b.WriteString(s + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(s)+2))
	}
	for i := from; i < to; i++ {
		s := row[i]
		b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(s)) + s)
		if i < to-1 {
			b.WriteString("  ")
		}
	}
	t.say("%s", t.style(code, b.String()))
}
