package claims

import (
	"testing"

	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

// Planted measurements.

func values(xs ...float64) judge.Input { return judge.Input{Values: xs} }

// ratios plants pairs of these ratios over a level that drifts by half.
func ratios(xs ...float64) judge.Input {
	var in judge.Input
	for i, x := range xs {
		b := 200 * (1 + 0.5*float64(i)/float64(len(xs)))
		in.Pairs = append(in.Pairs, judge.Pair{A: x * b, B: b})
	}
	return in
}

// points plants pairs of these differences.
func points(xs ...float64) judge.Input {
	var in judge.Input
	for i, x := range xs {
		b := 5 + float64(i)
		in.Pairs = append(in.Pairs, judge.Pair{A: b + x, B: b})
	}
	return in
}

// over adds twins that differ by about the share.
func over(noise float64, in judge.Input) judge.Input {
	for _, side := range []float64{1, -1, 0.5} {
		in.AA = append(in.AA, judge.Pair{A: 10 * (1 + side*noise), B: 10})
	}
	return in
}

// Every rule of the family, planted on either side of its bounds and across them.
func TestEveryRuleOfFamilyHDecidesWhatIsPlanted(t *testing.T) {
	planted := []struct {
		claim                      Claim
		holds, fails, inconclusive []judge.Input
	}{
		{
			claim:        H1,
			holds:        []judge.Input{ratios(4.2, 4.3, 4.25), ratios(4.8, 4.82, 4.79)},
			fails:        []judge.Input{ratios(3.7, 3.75, 3.72), ratios(5.3, 5.4, 5.35)},
			inconclusive: []judge.Input{ratios(3.9, 4.1, 4.2), ratios(4.9, 5.1, 5), ratios(3, 4.5, 6), ratios(4.5, 4.5)},
		},
		{
			claim:        H2Refused,
			holds:        []judge.Input{values(88.1, 88.3, 88), values(85, 85, 85)},
			fails:        []judge.Input{values(0, 0, 0), values(80, 80.5, 80.2), values(99, 98.9, 99)},
			inconclusive: []judge.Input{values(84, 85, 86), values(91, 92, 93)},
		},
		{
			claim:        H2Goodput,
			holds:        []judge.Input{values(2100, 2120, 2110)},
			fails:        []judge.Input{values(250, 252, 249), values(2500, 2510, 2490)},
			inconclusive: []judge.Input{values(1850, 1920, 1980), values(2300, 2350, 2330)},
		},
		{
			claim:        H2Law,
			holds:        []judge.Input{ratios(0.97, 0.98, 0.975)},
			fails:        []judge.Input{ratios(0.5, 0.51, 0.5), ratios(1.2, 1.21, 1.22)},
			inconclusive: []judge.Input{ratios(0.88, 0.9, 0.92), ratios(1.08, 1.1, 1.12)},
		},
		{
			claim:        H3Refused,
			holds:        []judge.Input{values(84.1, 84.5, 84.3)},
			fails:        []judge.Input{values(60, 61, 60.5), values(95, 95.5, 95.2)},
			inconclusive: []judge.Input{values(79, 80, 81), values(89, 90, 91)},
		},
		{
			claim:        H3Throughput,
			holds:        []judge.Input{ratios(3.9, 4, 3.95)},
			fails:        []judge.Input{ratios(2.5, 2.55, 2.52), ratios(6, 6.1, 6.05)},
			inconclusive: []judge.Input{ratios(2.9, 3, 3.1), ratios(4.8, 5, 5.3)},
		},
		{
			claim:        H3Goodput,
			holds:        []judge.Input{values(1590, 1600, 1580)},
			fails:        []judge.Input{values(250, 252, 249), values(1800, 1810, 1805)},
			inconclusive: []judge.Input{values(1400, 1430, 1480), values(1740, 1760, 1750)},
		},
		{
			claim:        H4Published,
			holds:        []judge.Input{values(51, 52, 51.5)},
			fails:        []judge.Input{values(4.6, 4.8, 4.7), values(90, 91, 92)},
			inconclusive: []judge.Input{values(44, 45, 46), values(50, 58, 55)},
		},
		{
			claim:        H4Warm,
			holds:        []judge.Input{values(84, 85, 86)},
			fails:        []judge.Input{values(50, 51, 52), values(97, 97.5, 98)},
			inconclusive: []judge.Input{values(79, 80, 81), values(88, 90, 91)},
		},
		{
			claim:        H9Uncleared,
			holds:        []judge.Input{values(901, 950, 932), values(0, 1, 0)},
			fails:        []judge.Input{values(0, 0, 0)},
			inconclusive: []judge.Input{values(900, 901), {Missing: "The uncleared server was killed."}},
		},
		{
			claim:        H9Cleared,
			holds:        []judge.Input{values(0, 0, 0)},
			fails:        []judge.Input{values(0, 0, 1), values(900, 950, 932)},
			inconclusive: []judge.Input{values(0, 0)},
		},
		{
			claim:        H10P99,
			holds:        []judge.Input{over(0.03, ratios(0.8, 0.81, 0.79))},
			fails:        []judge.Input{over(0.03, ratios(1.2, 1.21, 1.19))},
			inconclusive: []judge.Input{over(0.03, ratios(0.99, 1, 0.98)), over(0.3, ratios(0.8, 0.81, 0.79)), over(0.03, ratios(0.7, 1, 0.8)), ratios(0.8, 0.81, 0.79)},
		},
		{
			claim:        H10GC,
			holds:        []judge.Input{over(0.05, points(-2, -2.1, -1.9))},
			fails:        []judge.Input{over(0.05, points(2, 2.1, 1.9))},
			inconclusive: []judge.Input{over(0.05, points(0, 0, 0)), over(0.05, points(-0.4, -0.5, -0.3)), over(0.05, points(-4, 0, -1))},
		},
		{
			claim:        H11Stack,
			holds:        []judge.Input{values(2.2, 2.3, 2.25), values(2, 2, 2)},
			fails:        []judge.Input{values(8, 8.2, 8.1), values(1.5, 1.52, 1.51)},
			inconclusive: []judge.Input{values(3.8, 4.1, 4.2), values(1.9, 2, 2.1)},
		},
		{
			claim:        H11Connections,
			holds:        []judge.Input{values(20, 20, 20), values(18, 20, 19)},
			fails:        []judge.Input{values(20, 21, 20)},
			inconclusive: []judge.Input{values(20, 20)},
		},
	}

	tested := map[string]bool{}
	for _, p := range planted {
		tested[p.claim.ID] = true
		for want, inputs := range map[results.Verdict][]judge.Input{
			results.Holds: p.holds, results.Fails: p.fails, results.Inconclusive: p.inconclusive,
		} {
			if len(inputs) == 0 {
				t.Errorf("%s: nothing planted that is %q", p.claim.ID, want)
			}
			for _, in := range inputs {
				in.Seed = 1
				if got := p.claim.Judge("planted", in); got.Verdict != want {
					t.Errorf("%s: %q, want %q: %s", p.claim.ID, got.Verdict, want, got.Why)
				}
			}
		}
	}
	for _, c := range H.Claims {
		if !tested[c.ID] {
			t.Errorf("%s has no planted case", c.ID)
		}
	}
}

func TestH10NeedsOnlyOneOfItsHalves(t *testing.T) {
	p99 := map[results.Verdict]judge.Input{
		results.Holds: over(0.03, ratios(0.8, 0.81, 0.79)), results.Fails: over(0.03, ratios(1.2, 1.21, 1.19)), results.Inconclusive: over(0.03, ratios(1, 1, 1)),
	}
	gc := map[results.Verdict]judge.Input{
		results.Holds: over(0.05, points(-2, -2.1, -1.9)), results.Fails: over(0.05, points(2, 2.1, 1.9)), results.Inconclusive: over(0.05, points(0, 0, 0)),
	}
	for _, c := range []struct {
		p99, gc, want results.Verdict
		unit          string // of the half that decided
	}{
		{results.Holds, results.Fails, results.Holds, "x"},
		{results.Fails, results.Holds, results.Holds, "points"},
		{results.Fails, results.Fails, results.Fails, "x"},
		{results.Fails, results.Inconclusive, results.Inconclusive, "points"},
		{results.Inconclusive, results.Inconclusive, results.Inconclusive, "x"},
	} {
		got := H10(H10P99.Judge("planted", p99[c.p99]), H10GC.Judge("planted", gc[c.gc]))
		if got.ID != "H10" || got.Verdict != c.want || got.Unit != c.unit || got.Setup != "planted" {
			t.Errorf("p99 %s, GC %s: %+v", c.p99, c.gc, got)
		}
	}
}

func TestConnectionsFollowTheNumberOfWorkers(t *testing.T) {
	c := H11ConnectionsOf(8)
	if got := c.Judge("planted", values(8, 9, 8)); got.Verdict != results.Fails {
		t.Errorf("9 connections of 8 workers: %+v", got)
	}
}
