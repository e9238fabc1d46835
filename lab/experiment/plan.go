package experiment

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// Plan is what one session runs: every group once in each repeat.
type Plan struct {
	Programs []contestant.Spec               // whose programs are built first, unless this process plays the roles
	Prepare  func(ctx context.Context) error // before anything is measured; may be nil
	Cells    []Cell
	Groups   []Group

	// Serving returns the process id of a server that the runs use and that is not theirs,
	// such as a database's, so that what it and its children compute does not count as a
	// disturbance; 0 if it is not known. It may be nil.
	Serving func() int
}

// Group is cells that are measured together, for instance in turns.
type Group struct {
	Keys   []ledger.Key
	Label  string        // for the progress; empty: from the keys
	Beside string        // groups of one non-empty name run at the same time
	Uses   float64       // the share of the processors that it uses, if other experiments may run beside it; 0: it runs alone
	Expect time.Duration // how long it should take

	// Run measures: one run for each key, in that order. It fills everything but the
	// cell's name, the repeat, the order and the start. An error means that there is no
	// measurement.
	Run func(ctx context.Context, t Trial) ([]results.Run, error)
}

// Cell is a group of one.
type Cell struct {
	Setup, Load, Pattern string

	Twin   bool          // the second of an A/A pair
	Beside string        // as of Group
	Uses   float64       // as of Group
	Expect time.Duration // as of Group

	Run func(ctx context.Context, t Trial) (results.Run, error) // as of Group
}

// Trial is one run of a group.
type Trial struct {
	Repeat int
	Seed   uint64 // the same for every group of a repeat, so that they have the same random input
}

// Key names the cell.
func (c Cell) Key() ledger.Key {
	return ledger.Key{Setup: c.Setup, Load: c.Load, Pattern: c.Pattern, Twin: c.Twin}
}

func (c Cell) group() Group {
	return Group{Keys: []ledger.Key{c.Key()}, Beside: c.Beside, Uses: c.Uses, Expect: c.Expect,
		Run: func(ctx context.Context, t Trial) ([]results.Run, error) {
			run, err := c.Run(ctx, t)
			return []results.Run{run}, err
		}}
}

// Keys returns every cell of the plan.
func (p Plan) Keys() (out []ledger.Key) {
	for _, g := range p.groups() {
		out = append(out, g.Keys...)
	}
	return out
}

// Expect is how long so many repeats should take.
func (p Plan) Expect(repeats int) (sum time.Duration) {
	for _, b := range p.batches() {
		sum += time.Duration(repeats) * b.expect(nil, 1)
	}
	return sum
}

func (p Plan) groups() []Group {
	out := slices.Clone(p.Groups)
	for _, c := range p.Cells {
		out = append(out, c.group())
	}
	return out
}

// batch is the groups that run at the same time.
type batch []Group

// batches joins the groups that run at the same time. Every other group is a batch of
// its own.
func (p Plan) batches() (out []batch) {
	at := map[string]int{}
	for _, g := range p.groups() {
		if i, ok := at[g.Beside]; ok && g.Beside != "" {
			out[i] = append(out[i], g)
			continue
		}
		at[g.Beside] = len(out)
		out = append(out, batch{g})
	}
	return out
}

// expect is as long as the longest group should take: the time that it took last, or
// what was planned, times slower if the group needs all processors.
func (b batch) expect(took map[ledger.Key]time.Duration, slower float64) (longest time.Duration) {
	for _, g := range b {
		expect := g.Expect
		if b.uses() == 1 {
			expect = time.Duration(float64(expect) * slower)
		}
		for _, k := range g.Keys {
			if last, measured := took[k]; measured {
				expect = last
			}
		}
		longest = max(longest, expect)
	}
	return longest
}

// uses is the share of the processors that the batch needs: all of them, unless every group
// says otherwise.
func (b batch) uses() (sum float64) {
	for _, g := range b {
		if g.Uses <= 0 {
			return 1
		}
		sum += g.Uses
	}
	return min(sum, 1)
}

func (b batch) label() string {
	if len(b) > 1 && b[0].Label == "" {
		return b[0].Beside
	}
	return b[0].label()
}

// label names what the keys have in common, and their contestants.
func (g Group) label() string {
	if g.Label != "" {
		return g.Label
	}
	first := g.Keys[0]
	if len(g.Keys) == 1 {
		return first.String()
	}
	var names []string
	for _, k := range g.Keys {
		if !slices.Contains(names, k.Pattern) {
			names = append(names, k.Pattern)
		}
	}
	if len(names) > 4 {
		names = append(names[:3], fmt.Sprintf("%d others", len(names)-3))
	}
	return fmt.Sprintf("%s · %s · %s in turns", first.Setup, first.Load, strings.Join(names, ", "))
}

func (b batch) has(keys []ledger.Key) bool {
	return slices.ContainsFunc(b, func(g Group) bool {
		return slices.ContainsFunc(g.Keys, func(k ledger.Key) bool { return slices.Contains(keys, k) })
	})
}

// evidence is a session in which every cell of the plan was run once, and nothing was measured.
func (p Plan) evidence() *ledger.Evidence {
	var all []results.Run
	for _, k := range p.Keys() {
		all = append(all, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Params: map[string]any{"gomaxprocs": runtime.GOMAXPROCS(0)}})
	}
	return ledger.NewEvidence(all, 0)
}

// first are the cells of the published claims, or of the goals, with the repeats that the claims need
// before their first verdicts. Published claims that nothing in the plan can decide come with the goals.
func (e *Experiment) first(p Plan, goals bool) (out []lack) {
	ev := p.evidence()
	for _, c := range e.Claims {
		if (c.Goal || c.Undecidable(ev)) == goals {
			out = append(out, lack{c.Keys(ev), c.Repeats(ev)})
		}
	}
	return out
}

// only is the plan with only the groups that have one of these cells.
func (p Plan) only(all []lack) Plan {
	p.Groups = slices.DeleteFunc(p.groups(), func(g Group) bool { return !batch{g}.lacks(all, 0) })
	p.Cells = nil
	return p
}
