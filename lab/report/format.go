package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"

	"github.com/spillway-go/spillway/load/numbers"
)

// none is shown where there is no value; it is not a zero.
const none = "–"

// formats of columns: those of ledger.Column, and a few that show only what occurred.
var formats = map[string]func(float64) string{
	"": number, "nanos": nanos, "micros": micros, "size": size, "percent": percent, "ratio": ratio, "decimals": decimals,
	"count": some(number), "share": some(percent),
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
	return fmt.Sprintf("median %s of %s, %s to %s", format(s.median()), count(len(s), "repeat"), format(slices.Min(s)), format(slices.Max(s)))
}

// with writes a value in a claim's unit.
func with(v float64, unit string) string {
	return number(v) + pick(unit == "" || unit == "x", "", " ") + unit
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
