package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/numbers"
)

// none is shown where there is no value; it is not a zero.
const none = "–"

// formats of ledger.Column.
var formats = map[string]func(float64) string{
	"": number, "nanos": nanos, "micros": micros, "size": size, "percent": percent, "ratio": ratio, "decimals": decimals,
}

func number(v float64) string { return numbers.Format(v) }

// in writes a value with the best of the units, each the base of the one before.
func in(v, base, top float64, units ...string) string {
	for ; v >= top && len(units) > 1; units = units[1:] {
		v /= base
	}
	return number(v) + units[0]
}

func nanos(v float64) string {
	return pick(v == 0, "0", in(v, 1000, 999.5, " ns", " µs", " ms", " s"))
}

func micros(v float64) string { return nanos(1e3 * v) }

func size(v float64) string { return in(v, 1024, 1024, " B", " KiB", " MiB", " GiB") }

func decimals(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

func ratio(v float64) string { return decimals(v) + "x" }

func percent(share float64) string { return number(100*share) + " %" }

// some writes none for zero, so that tables show only what occurred.
func some(format func(float64) string) func(float64) string {
	return func(v float64) string { return pick(v == 0, none, format(v)) }
}

// or writes the median of a figure, or none when it was not measured.
func (s stat) or(format func(float64) string) string {
	return pick(len(s) == 0, none, format(s.median()))
}

// spread writes a figure's median and range over the repeats.
func (s stat) spread(format func(float64) string) string {
	if len(s) == 0 {
		return "not measured"
	}
	lo, hi := format(slices.Min(s)), format(slices.Max(s))
	switch {
	case len(s) == 1:
		return lo + " (one run)"
	case lo == hi:
		return fmt.Sprintf("%s in each of %d repeats", lo, len(s))
	}
	return fmt.Sprintf("median %s of %d repeats, %s to %s", format(s.median()), len(s), lo, hi)
}

// with writes a value in a claim's unit.
func with(v float64, unit string) string {
	return number(v) + pick(unit == "" || unit == "x", "", " ") + unit
}

// margin writes how near to the edge of its rule an answer is not decided.
func margin(a results.Answer) string {
	return "± " + pick(a.Unit == "x", percent(a.Floor), with(a.Floor, a.Unit))
}

func count(n int, what string) string {
	return fmt.Sprintf("%s %s", number(float64(n)), pick(n == 1, what, what+"s"))
}

func pick(cond bool, a, b string) string {
	if cond {
		return a
	}
	return b
}

// filled are the texts that say something.
func filled(texts ...string) []string {
	return slices.DeleteFunc(texts, func(s string) bool { return s == "" })
}

// sentence begins with a capital.
func sentence(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return pick(r == utf8.RuneError, s, string(unicode.ToUpper(r))+s[n:])
}

// setupName turns a run's set-up into the words of the claims.
func setupName(setup string) string {
	return cmp.Or(map[string]string{"published": "as published", "real": "for real"}[setup], setup)
}

// loadName is a load in words. Only the loads of the ledger get the word "load";
// other names are clear without it.
func loadName(load string) string {
	return load + pick(slices.Contains(knownLoads, load), " load", "")
}

// title is a readable name of a run.
func title(r *results.Run) string {
	return fmt.Sprintf("%s, %s, %s%s, repeat %d", setupName(r.Setup), loadName(r.Load), r.Pattern, pick(r.Twin, " (twin)", ""), r.Repeat+1)
}

// groupNote says what the figures of a load are based on.
func groupNote(l *load) string {
	lo, hi, sent := math.MaxInt, 0, stat{}
	for _, c := range l.cells {
		lo, hi = min(lo, len(c.runs)), max(hi, len(c.runs))
		sent = append(sent, c.stat(offered)...)
	}
	same := len(sent) > 0 && slices.Max(sent) <= 1.1*slices.Min(sent)
	return pick(l.idle() || !same, "", sent.or(number)+" requests a run, ") + "medians over " + pick(lo == hi, "", fmt.Sprint(lo, " to ")) + count(hi, "repeat")
}
