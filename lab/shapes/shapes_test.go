package shapes

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/ledger/ledgertest"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/load/usage"
)

func TestEveryShapeBringsEveryResultBack(t *testing.T) {
	for _, kind := range append([]string{Serial, SpawnChan, SpawnWG, SpawnWGEach, SharedChan, PerWorker}, mechanisms...) {
		for _, buffer := range []int{0, 1, 16} {
			for _, n := range []int{0, 1, 7, 300} {
				prepare, err := Shape{kind, 3, buffer}.preparing()
				if err != nil {
					t.Fatal(err)
				}
				if got := prepare()(n); got != serial(n) || got != sumOf(n) {
					t.Errorf("%s, buffer %d: the sum over %d is %d, want %d", kind, buffer, n, got, sumOf(n))
				}
			}
		}
	}
	if _, err := (Shape{Kind: "Circle"}).preparing(); err == nil {
		t.Error("an unknown shape was prepared")
	}
}

// The published figures: 160 B in 3 allocations, 56 B in 2, none.
func TestAllocationsAreThePublishedOnes(t *testing.T) {
	if usage.Race {
		t.Skip("the race detector adds allocations of its own")
	}
	want := map[string]float64{Serial: 0, SpawnChan: 3, SpawnWG: 2, SpawnWGEach: 2, SharedChan: 0, PerWorker: 0}
	for kind, want := range want {
		const units = 10_000
		shape, err := Shape{kind, 10, 1}.player()
		if err != nil {
			t.Fatal(err)
		}
		readings, err := turns.Play(t.Context(), turns.Config{Rounds: 1, Least: units}, []turns.Player{shape})
		if err != nil {
			t.Fatal(err)
		}
		if got := turns.Each(readings[0], turns.Mallocs)[0]; readings[0][0].N != units || got < want || got >= want+1 {
			t.Errorf("%s: %v allocations a unit, want %v", kind, got, want)
		}
	}
}

func TestALostResultIsAnError(t *testing.T) {
	if err := (Shape{Kind: Serial}).check(3, 5); err == nil || !strings.Contains(err.Error(), "is 5, want 6") {
		t.Error(err)
	}
}

func TestRequestsAreDoneByEveryPattern(t *testing.T) {
	for _, pattern := range []string{Spawn, Pool, PoolReuse, AsPrinted} {
		for what, made := range map[string]func(string) (turns.Player, error){"H": Served, "B": burstJobs} {
			p, err := made(pattern)
			if err == nil {
				_, err = turns.Play(t.Context(), turns.Config{Rounds: 1, Least: 6}, []turns.Player{p})
			}
			if err != nil {
				t.Errorf("%s of %s: %v", pattern, what, err)
			}
		}
	}
	if _, err := Served("none"); err == nil || !strings.Contains(err.Error(), "no pattern") {
		t.Error(err)
	}
}

func TestWithoutValgrindItSaysWhatToInstall(t *testing.T) {
	timed := []results.Run{{Setup: asB, Load: boundKey(asB, atOnce, Pool).Load, Pattern: Pool, Elapsed: 1}}
	for _, c := range Experiment.Judge(timed, results.Results{}) {
		if c.ID == "G9" && (c.Verdict != results.Inconclusive || !strings.Contains(c.Why, "install Valgrind")) {
			t.Errorf("%s: %s", c.Verdict, c.Why)
		}
	}
}

func TestVerdictsFollowTheFigures(t *testing.T) {
	soak.WithoutRace(t)
	runs := labtest.Planned(plan(experiment.Sized[Config]("")))
	on := func(processors int) {
		for i := range runs {
			runs[i].Params = map[string]any{"gomaxprocs": processors}
		}
	}
	on(2)
	ledgertest.Check(t, Experiment.Family, runs)
	on(1)
	for _, c := range Experiment.Judge(runs, results.Results{}) {
		if needs := c.ID == "G5" || c.ID == "G6"; (c.Verdict == results.NeedsHardware) != needs {
			t.Errorf("%s with one processor: %s", c.ID, c.Verdict)
		}
	}
}

func TestBoundsLieOnBothSidesOfTheRule(t *testing.T) {
	for procs, want := range map[int][]int{1: {1, 2, 4, 8, 32, 128}, 2: {1, 2, 4, 8, 16, 64, 256}, 8: {1, 4, 8, 16, 32, 64, 256, 1024}} {
		if got := bounds(procs); !slices.Equal(got, want) {
			t.Errorf("GOMAXPROCS %d: %v, want %v", procs, got, want)
		}
	}
}

// BenchmarkShape is the experiment for benchstat:
//
//	go test ./lab/shapes -run '^$' -bench Shape -benchmem -count 10 | tee new.txt
//	benchstat -col /shape new.txt
//
// A shape is a whole batch, so it is given b.N at once.
func BenchmarkShape(b *testing.B) {
	for _, s := range units(runtime.GOMAXPROCS(0)) {
		b.Run(fmt.Sprintf("shape=%s/buffer=%d", s.label(), s.Buffer), func(b *testing.B) {
			prepare, err := s.preparing()
			if err != nil {
				b.Fatal(err)
			}
			run := prepare()
			b.ReportAllocs()
			b.ResetTimer()
			if err := s.check(b.N, run(b.N)); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkBounded is CPU-bound work under a range of bounds (G6).
func BenchmarkBounded(b *testing.B) {
	for _, mechanism := range mechanisms {
		for _, bound := range bounds(2) {
			b.Run(fmt.Sprintf("by=%s/bound=%d", mechanism, bound), func(b *testing.B) {
				prepare, err := Shape{Kind: mechanism, Workers: bound}.preparing()
				if err != nil {
					b.Fatal(err)
				}
				run := prepare()
				b.ResetTimer()
				run(b.N)
			})
		}
	}
}
