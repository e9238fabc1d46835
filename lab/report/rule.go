package report

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/lab/report/chart"
	"github.com/spillway-go/spillway/lab/results"
)

// A claim has its rule and the published figure in words. For the small axis they are
// parsed strictly: ambiguous words draw nothing, because a wrong band is worse than
// none.

const figure = `(\d[\d,]*(?:\.\d+)?)`

var (
	within  = regexp.MustCompile(`within (?:±\s*)?` + figure + `\s*% of (?:[a-z' ]*?)` + figure)
	spanned = regexp.MustCompile(figure + `\s*(?:–|-|\bto\b|\.\.)\s*` + figure)
	atLeast = regexp.MustCompile(`(?:≥|>=|>|at least|above|more than|over)\s*` + figure)
	atMost  = regexp.MustCompile(`(?:≤|<=|<|at most|below|less than|under|never exceeds?(?: the)?)\s*` + figure)
	ofOne   = regexp.MustCompile(`within (?:±\s*)?` + figure + `\s*%`)
	alone   = regexp.MustCompile(`(?:^|[^\pL\d.,])` + figure) // not the 2 of H2
)

func parse(s string) float64 {
	v, err := strconv.ParseFloat(strings.ReplaceAll(s, ",", ""), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// band reads the range in which the claim holds, or returns nil.
func band(c results.OldClaim) *chart.Range {
	rule := strings.ToLower(c.Rule)
	if n := noise(c); n != nil {
		switch {
		case strings.Contains(rule, "lower by more than the noise floor"):
			return &chart.Range{Low: math.Inf(-1), High: n.Low}
		case strings.Contains(rule, "higher by more than the noise floor"):
			return &chart.Range{Low: n.High, High: math.Inf(1)}
		}
	}
	readings := []chart.Range{}
	rest := within.ReplaceAllStringFunc(rule, func(m string) string {
		g := within.FindStringSubmatch(m)
		share, v := parse(g[1])/100, parse(g[2])
		readings = append(readings, chart.Range{Low: v * (1 - share), High: v * (1 + share)})
		return ""
	})
	if g := ofOne.FindStringSubmatch(rest); g != nil && c.Unit == "x" {
		share := parse(g[1]) / 100
		readings = append(readings, chart.Range{Low: 1 - share, High: 1 + share})
		rest = ""
	}
	rest = spanned.ReplaceAllStringFunc(rest, func(m string) string {
		g := spanned.FindStringSubmatch(m)
		readings = append(readings, chart.Range{Low: parse(g[1]), High: parse(g[2])})
		return ""
	})
	for _, g := range atLeast.FindAllStringSubmatch(rest, -1) {
		readings = append(readings, chart.Range{Low: parse(g[1]), High: math.Inf(1)})
	}
	for _, g := range atMost.FindAllStringSubmatch(rest, -1) {
		readings = append(readings, chart.Range{Low: math.Inf(-1), High: parse(g[1])})
	}
	if len(readings) != 1 || !(readings[0].Low <= readings[0].High) {
		return nil
	}
	return &readings[0]
}

// published reads the published figure: the one in the claim's unit in the title or the
// published words, else the only number there. It does not interpret lists of figures.
func published(c results.OldClaim) *chart.Range {
	if c.Unit != "" {
		unit := regexp.MustCompile(figure + `(?:\s*(?:–|-|to)\s*` + figure + `)?\s*` + regexp.QuoteMeta(strings.ToLower(c.Unit)) + `(?:[^a-z/]|$)`)
		for _, text := range []string{strings.ToLower(c.Title), strings.ToLower(c.Published)} {
			all := unit.FindAllStringSubmatchIndex(text, -1)
			if len(all) != 1 || listed.MatchString(text[:all[0][0]]) {
				continue
			}
			low := parse(text[all[0][2]:all[0][3]])
			high := low
			if all[0][4] >= 0 {
				high = parse(text[all[0][4]:all[0][5]])
			}
			return &chart.Range{Low: low, High: high}
		}
	}
	if all := alone.FindAllStringSubmatch(c.Published, -1); len(all) == 1 {
		return &chart.Range{Low: parse(all[0][1]), High: parse(all[0][1])}
	}
	return nil
}

// listed matches a text that ends in the middle of a list of figures.
var listed = regexp.MustCompile(figure + `\s*(?:vs|/|,|and|or)\s*$`)

// noise is the zone of differences that the same contestant shows against
// itself, around no difference; nil when the rule has no use for it.
func noise(c results.OldClaim) *chart.Range {
	if !(c.NoiseFloor > 0) {
		return nil
	}
	centre := 0.0
	if c.Unit == "x" {
		centre = 1
	}
	return &chart.Range{Low: centre - c.NoiseFloor, High: centre + c.NoiseFloor}
}
