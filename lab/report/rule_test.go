package report

import (
	"math"
	"testing"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/report/chart"
	"github.com/spillway-go/spillway/lab/results"
)

func same(a, b *chart.Range) bool {
	near := func(x, y float64) bool { return x == y || math.Abs(x-y) < 1e-9*math.Abs(x) }
	return a == nil && b == nil || a != nil && b != nil && near(a.Low, b.Low) && near(a.High, b.High)
}

func TestRulesAreReadBackOrNotAtAll(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		rule, unit string
		floor      float64
		want       *chart.Range
	}{
		{rule: "naive/pool throughput is 4–5x", want: &chart.Range{Low: 4, High: 5}},
		{rule: "85–92 % of the requests are refused", want: &chart.Range{Low: 85, High: 92}},
		{rule: "the pool's goodput is within 10 % of 2,124 req/s", want: &chart.Range{Low: 1911.6, High: 2336.4}},
		{rule: "measured goodput is within 10 % of the law", unit: "x", want: &chart.Range{Low: .9, High: 1.1}},
		{rule: "connections in use never exceed the 20 workers", want: &chart.Range{Low: -inf, High: 20}},
		{rule: "ratio ≥ 3", want: &chart.Range{Low: 3, High: inf}},
		{rule: "p99 is lower by more than the noise floor", unit: "x", floor: .02, want: &chart.Range{Low: -inf, High: .98}},
		{rule: "a is higher by more than the noise floor", unit: "points", floor: .5, want: &chart.Range{Low: .5, High: inf}},
		{rule: "p99 is lower by more than the noise floor", unit: "x"}, // no floor known
		{rule: "≥ 50 % refused, p99 of a refusal < 1 ms"},              // two readings
		{rule: "5–4x"}, // nonsense
		{rule: "uncleared reuse shows foreign data at least once"},
		{rule: ""},
	} {
		got := band(results.OldClaim{Rule: c.rule, Unit: c.unit, NoiseFloor: c.floor})
		if !same(got, c.want) {
			t.Errorf("%q is read as %v, want %v", c.rule, got, c.want)
		}
	}
}

func TestPublishedFiguresAreReadBackOrNotAtAll(t *testing.T) {
	for _, c := range []struct {
		title, published, unit string
		want                   *chart.Range
	}{
		{"naive beats the pool 4–5x in throughput", "1,115 vs 260 req/s; mean 75.9 vs 364.9 ms", "x", &chart.Range{Low: 4, High: 5}},
		{"the pool answers 2,124 req/s", "11,104 / 2,124 / 2,248 req/s", "req/s", &chart.Range{Low: 2124, High: 2124}},
		{"the pool refuses most", "11,104 / 2,124 / 2,248 req/s", "req/s", nil},
		{"reuse", "51 %", "%", &chart.Range{Low: 51, High: 51}},
		{"reuse", "80–90 %", "%", &chart.Range{Low: 80, High: 90}},
		{"a law", "not claimed; it explains H2/goodput", "x", nil},
		{"no figure", "a rule, no figure", "", nil},
		{"two numbers", "20 workers, at most 20 connections", "", nil},
	} {
		got := published(results.OldClaim{Title: c.title, Published: c.published, Unit: c.unit})
		if !same(got, c.want) {
			t.Errorf("%q, %q in %s is read as %v, want %v", c.title, c.published, c.unit, got, c.want)
		}
	}
}

// This parser must understand the ledger's words: these rules are ranges, so they have
// a band.
func TestRangesOfTheLedgerHaveABand(t *testing.T) {
	for _, id := range []string{"H1", "H2/refused", "H2/goodput", "H2/law", "H3/refused", "H3/throughput", "H3/goodput", "H4/published", "H4/warm", "H11/stack", "H11/connections"} {
		c, ok := claims.Find(id)
		if !ok {
			t.Errorf("%s is not in the ledger", id)
			continue
		}
		if band(results.OldClaim{Rule: c.HoldsIf, Unit: c.Question.Unit}) == nil {
			t.Errorf("%s: no band is read from %q", id, c.HoldsIf)
		}
	}
}
