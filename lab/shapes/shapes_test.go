package shapes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/internal/labtest"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
)

func TestMain(m *testing.M) { labtest.Main(m, Roles()) }

func TestEveryShapeBringsEveryResultBack(t *testing.T) {
	for _, shape := range []string{Serial, SpawnChan, SpawnWG, SharedChan, PerWorker, boundPool, boundSem, boundDispatch} {
		for _, buffer := range []int{0, 1, 16} {
			for _, n := range []int{0, 1, 7, 300} {
				run, err := Prepare(shape, 3, buffer)
				if err != nil {
					t.Fatal(err)
				}
				if got := run(n); got != serial(n) || got != sumOf(n) {
					t.Errorf("%s, buffer %d: the sum over %d is %d, want %d", shape, buffer, n, got, sumOf(n))
				}
			}
		}
	}
	if _, err := Prepare("Circle", 1, 0); err == nil {
		t.Error("an unknown shape was prepared")
	}
}

// The published figures: 160 B in 3 allocations, 56 B in 2, none.
func TestAllocationsAreThePublishedOnes(t *testing.T) {
	if usage.Race {
		t.Skip("the race detector adds allocations of its own")
	}
	for shape, want := range map[string]float64{Serial: 0, SpawnChan: 3, SpawnWG: 2, SharedChan: 0, PerWorker: 0} {
		run, err := measure(t.Context(), job{Shape: shape, Workers: 10, Buffer: 1, For: 5 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if got := allocs(run); got != want {
			t.Errorf("%s: %v allocations a unit, want %v", shape, got, want)
		}
	}
}

func TestAutoScalingStopsAtTheFirstBatchThatIsLongEnough(t *testing.T) {
	m, err := job{Shape: Serial, For: time.Millisecond}.autoScaled(t.Context())
	if err != nil || m.took < time.Millisecond || m.ops < 1000 {
		t.Errorf("%+v, %v", m, err)
	}
}

func tiny() Config {
	return Config{Buffers: []int{0, 128}, Workers: []int{3}, BenchTime: time.Millisecond, Ops: 200, Requests: 120, MemoryCap: 2 << 30}
}

func TestEveryKindOfCellCanBeRun(t *testing.T) {
	plan, err := Classic{tiny()}.Plan()
	if err != nil || plan.Scaled == "" {
		t.Fatalf("scaled %q, %v", plan.Scaled, err)
	}
	seen := map[string]bool{}
	kinds := map[string]bool{} // one of each is enough: of the workers, the buffers, the bounds
	var runs []results.Run
	for _, c := range plan.Cells {
		if seen[c.Label()] {
			t.Errorf("%s is planned twice", c.Label())
		}
		seen[c.Label()] = true
		shape, _, _ := strings.Cut(c.Pattern, "_")
		if kinds[c.Setup+shape] {
			continue
		}
		kinds[c.Setup+shape] = true
		r, err := c.Run(t.Context(), experiment.Trial{Seed: 1})
		if err != nil {
			t.Errorf("%s: %v", c.Label(), err)
			continue
		}
		if r.Killed != "" || r.Offered == 0 || r.Elapsed <= 0 || r.Rate("ok") <= 0 {
			t.Errorf("%s: %+v", c.Label(), r)
		}
		r.Setup, r.Load, r.Pattern, r.Twin = c.Setup, c.Load, c.Pattern, c.Twin
		runs = append(runs, r)
	}
	for _, c := range (Classic{}).Judge(runs, 1) {
		if c.Verdict == "" || c.Why == "" {
			t.Errorf("%+v", c)
		}
	}
}

func TestBadSettingsAreNamed(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"buffer is -1":    func(c *Config) { c.Buffers = []int{-1} },
		"workers is 0":    func(c *Config) { c.Workers = []int{0} },
		"no buffer":       func(c *Config) { c.Buffers = nil },
		"benchtime is 0s": func(c *Config) { c.BenchTime = 0 },
		"ops is 0":        func(c *Config) { c.Ops = 0 },
		"requests is 0":   func(c *Config) { c.Requests = 0 },
	} {
		c := tiny()
		change(&c)
		if _, err := (Classic{c}).Plan(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if got := Defaults().scaled(); got != "" {
		t.Errorf("full size says %q", got)
	}
}

func TestBoundsLieOnBothSidesOfTheRule(t *testing.T) {
	for procs, want := range map[int][]int{1: {1, 2, 4, 8, 32, 128}, 2: {1, 2, 4, 8, 16, 64, 256}, 8: {1, 4, 8, 16, 32, 64, 256, 1024}} {
		if got := bounds(procs); !slices.Equal(got, want) {
			t.Errorf("GOMAXPROCS %d: %v, want %v", procs, got, want)
		}
	}
}

// made is a made-up run with that many nanoseconds per unit.
func made(c cell, repeat int, ns float64) results.Run {
	const ops = 1_000_000
	return results.Run{
		Setup: c.Setup, Load: c.Load, Pattern: c.Pattern, Twin: c.Twin, Repeat: repeat, Offered: ops, Elapsed: ns * ops / 1e9,
		Outcomes: []results.Outcome{{Kind: "ok", Count: ops, Latency: &histogram.Histogram{}}},
		Params:   map[string]any{"gomaxprocs": 2},
		Extra:    map[string]float64{"ns_per_op": ns, "allocs_per_op": 0, "cpu_us": ns},
	}
}

// published returns runs like the published ones, with one buffer.
func published(procs int) []results.Run {
	byClock := func(c cell, twin bool) cell { c.Setup, c.Twin = Clock, twin; return c }
	bounded := func(bound int, twin bool) cell {
		return cell{Setup: CPUBound, Load: boundLabel(bound), Pattern: boundPool, Twin: twin}
	}
	reuse := func(pattern string, twin bool) cell {
		return cell{Setup: AsB, Load: "bound 100", Pattern: pattern, Twin: twin}
	}
	var runs []results.Run
	for n := range 3 {
		wobble := 1 + .001*float64(n)
		for c, ns := range map[cell]float64{
			serially: .23, spawnWithWG: 131, spawnWithChan(0): 280,
			pool(SharedChan, 10, 0): 96, pool(SharedChan, 100, 0): 193, pool(SharedChan, 1000, 0): 244, pool(PerWorker, 100, 0): 74,
			byClock(spawnWithChan(0), false): 444, byClock(spawnWithChan(0), true): 445,
			byClock(pool(SharedChan, 10, 0), false): 96, byClock(pool(SharedChan, 10, 0), true): 96,
			bounded(1, false): 200, bounded(2, false): 100, bounded(2, true): 101, bounded(8, false): 150,
			reuse(Spawn, false): 165, reuse(Pool, false): 160, reuse(Pool, true): 161, reuse(PoolReuse, false): 20,
		} {
			r := made(c, n, ns*wobble)
			r.Params["gomaxprocs"] = procs
			runs = append(runs, r)
		}
	}
	return runs
}

func TestVerdictsFollowTheRuns(t *testing.T) {
	like := Classic{}.Judge(published(2), 1)
	turned := published(2)
	for i := range turned { // the other way round, where there is one
		r := &turned[i]
		switch r.Pattern {
		case Serial:
			r.Extra["ns_per_op"] = 5
		case SpawnChan:
			r.Extra["ns_per_op"] = 131
		case "PoolSharedChan_10":
			r.Extra["ns_per_op"], r.Extra["allocs_per_op"] = 150, 1
		case "PoolSharedChan_1000":
			r.Extra["ns_per_op"] = 132
		case "PoolPerWorkerChan_100":
			r.Extra["ns_per_op"] = 190
		case PoolReuse:
			r.Extra["cpu_us"] = 165
		case Spawn:
			r.Extra["cpu_us"] = 300
		case boundPool:
			if r.Load == "bound 8" {
				r.Elapsed /= 10
			}
		}
	}
	unlike := Classic{}.Judge(turned, 1)
	for _, c := range []struct{ id, setup string }{
		{"G1", "buffer 0"}, {"G2", "buffer 0"}, {"G3/faster", "10 workers, buffer 0"}, {"G3/allocs", "10 workers, buffer 0"},
		{"G4/wins", "buffer 0"}, {"G5", "buffer 0"}, {"G6/pool", CPUBound}, {"G9", AsB},
	} {
		if got := labtest.Claim(t, like, c.id, c.setup); got.Verdict != results.Holds {
			t.Errorf("%s (%s) %s from runs like the published ones: %s", c.id, c.setup, got.Verdict, got.Why)
		}
		if got := labtest.Claim(t, unlike, c.id, c.setup); got.Verdict != results.Fails {
			t.Errorf("%s (%s) %s from runs unlike them: %s", c.id, c.setup, got.Verdict, got.Why)
		}
	}
	if got := labtest.Claim(t, like, "G4/loses", "buffer 0"); got.Verdict != results.Holds {
		t.Errorf("G4/loses: %s", got.Why)
	}
	if got := labtest.Claim(t, like, "G8", "pool of 10, buffer 0"); got.Verdict != results.Holds || !strings.Contains(got.Why, "4.6") {
		t.Errorf("G8 %s: %s", got.Verdict, got.Why)
	}
	same := published(2)
	for i := range same {
		if same[i].Setup == Clock && same[i].Pattern == SpawnChan {
			same[i].Extra["ns_per_op"] = 280
		}
	}
	if got := labtest.Claim(t, Classic{}.Judge(same, 1), "G8", "pool of 10, buffer 0"); got.Verdict != results.Inconclusive {
		t.Errorf("G8 of methods that agree: %s, %s", got.Verdict, got.Why)
	}
	if got := labtest.Claim(t, like, "G6/semaphore", CPUBound); got.Verdict != results.Inconclusive || !strings.Contains(got.Why, "was not run") {
		t.Errorf("G6/semaphore without runs: %s, %s", got.Verdict, got.Why)
	}
}

func TestContentionNeedsASecondProcessor(t *testing.T) {
	judged := Classic{}.Judge(published(1), 1)
	for _, c := range []struct{ id, setup string }{{"G5", "buffer 0"}, {"G6/pool", CPUBound}} {
		if got := labtest.Claim(t, judged, c.id, c.setup); got.Verdict != results.NeedsHardware {
			t.Errorf("%s: %s", c.id, got.Verdict)
		}
	}
}

func TestEveryClaimOfTheFamilyIsJudged(t *testing.T) {
	judged := Classic{}.Judge(nil, 1)
	for _, c := range claims.G.Claims {
		id := strings.NewReplacer("G8/higher", "G8", "G8/lower", "G8").Replace(c.ID)
		i := slices.IndexFunc(judged, func(j results.OldClaim) bool { return j.ID == id })
		if i < 0 || judged[i].Verdict != results.Inconclusive {
			t.Errorf("%s without runs is not judged as open", c.ID)
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
	bench := func(shape string, workers, buffer int) {
		b.Run(fmt.Sprintf("shape=%s/buffer=%d", label(shape, workers), buffer), func(b *testing.B) {
			run, err := Prepare(shape, workers, buffer)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			if got := run(b.N); got != sumOf(b.N) {
				b.Fatalf("the sum over %d is %d", b.N, got)
			}
		})
	}
	bench(Serial, 0, 0)
	bench(SpawnWG, 0, 0)
	c := Defaults()
	for _, buffer := range c.Buffers {
		if buffer <= 1 {
			bench(SpawnChan, 0, buffer)
		}
		for _, workers := range c.pools() {
			bench(SharedChan, workers, buffer)
		}
		for _, workers := range c.Workers {
			bench(PerWorker, workers, buffer)
		}
	}
}

// BenchmarkBounded is CPU-bound work under a range of bounds (G6).
func BenchmarkBounded(b *testing.B) {
	for _, mechanism := range mechanisms {
		for _, bound := range bounds(2) {
			b.Run(fmt.Sprintf("by=%s/bound=%d", mechanism, bound), func(b *testing.B) {
				run, err := Prepare(mechanism, bound, 0)
				if err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				run(b.N)
			})
		}
	}
}
