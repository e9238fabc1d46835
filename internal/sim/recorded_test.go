package sim_test

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/limit"
)

// The recordings are of real backends, each on a quiet and on a noisy machine. To make them anew, on a machine
// that does nothing else, and to keep what the law then does in front of them:
//
//	go run ./lab/contestants/record -write
//	go test ./internal/sim -run InFrontOfRecorded -args -update

var update = flag.Bool("update", false, "keep what the law does in front of recorded backends, in "+sharesFile)

// sharesFile says for each recording and load what the adaptive limit answers, as a share of what the best fixed limit
// does. A law that answers less fails: by lessInARow in one row, or by lessInAll in the mean.
const (
	sharesFile = "testdata/recorded/shares"
	lessInARow = .25
	lessInAll  = .02
)

// recordings are those of testdata/recorded, by name.
func recordings(t *testing.T) (names []string, all []*sim.Recording) {
	t.Helper()
	files, err := filepath.Glob("testdata/recorded/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("recordings: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := sim.ParseRecording(string(text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		names, all = append(names, strings.TrimSuffix(filepath.Base(file), ".txt")), append(all, r)
	}
	return names, all
}

func fixed(n int) sim.Policy {
	return sim.Limiter(func() limit.Law { return limit.NewFixed(n) }, sim.Settings{})
}

// kept reads sharesFile.
func kept(t *testing.T) map[string]float64 {
	t.Helper()
	text, err := os.ReadFile(sharesFile)
	if err != nil {
		t.Fatal(err)
	}
	shares := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		var name, load string
		var ours, best, share float64
		var size int
		if _, err := fmt.Sscanf(line, rowFormat, &name, &load, &ours, &size, &best, &share); err != nil {
			t.Fatalf("%s: %q: %v", sharesFile, line, err)
		}
		shares[name+" "+load] = share
	}
	return shares
}

// Callers come at 0.7 to 3 times the highest recorded rate, and leave after a second. The best fixed limit is one of
// the four with the highest recorded rates.
//
//	go test ./internal/sim -v -run InFrontOfRecorded
func TestInFrontOfRecordedBackendsTheLawIsAsGoodAsItWas(t *testing.T) {
	soak.WithoutRace(t)
	names, all := recordings(t)
	rows := make([][]row, len(all))
	t.Run("recordings", func(t *testing.T) {
		for i, r := range all {
			t.Run(names[i], func(t *testing.T) {
				t.Parallel()
				for _, load := range sim.Few(.7, 3, 1.5) {
					rows[i] = append(rows[i], played(t, names[i], r, load))
				}
			})
		}
	})
	every := slices.Concat(rows...)
	if *update {
		if len(sim.Few(1, 2)) == 1 {
			t.Fatal("-update needs all rows, and the race detector leaves some out")
		}
		if err := os.WriteFile(sharesFile, []byte(table(every)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	was, mean, meanWas, worst := kept(t), 0.0, 0.0, 1.0
	for _, r := range every {
		once, known := was[r.name+" "+r.load]
		if !known {
			t.Errorf("%s at %s is not in %s: see -update", r.name, r.load, sharesFile)
		}
		if r.share < once-lessInARow {
			t.Errorf("%s at %s: the adaptive limit answers %.3f of what the best fixed limit does, and did %.3f", r.name, r.load, r.share, once)
		}
		mean, meanWas, worst = mean+r.share/float64(len(every)), meanWas+once/float64(len(every)), min(worst, r.share)
	}
	t.Logf("\n%srecorded: mean %.3f, worst %.3f of the best fixed limit", table(every), mean, worst)
	if mean < meanWas-lessInAll {
		t.Errorf("in the mean the adaptive limit answers %.3f of what the best fixed limits do, and did %.3f", mean, meanWas)
	}
}

// row is what was answered in front of one recording, at one load.
type row struct {
	name, load        string
	ours, best, share float64 // the first two of all callers
	size              int     // of the best fixed limit
}

const rowFormat = "%s %s adaptive %f fixed %d %f share %f\n"

func table(rows []row) (text string) {
	for _, r := range rows {
		text += fmt.Sprintf("%-24s %s adaptive %.3f fixed %3d %.3f share %.3f\n", r.name, r.load, r.ours, r.size, r.best, r.share)
	}
	return text
}

func played(t *testing.T, name string, r *sim.Recording, load float64) row {
	play := func(p sim.Policy) float64 {
		s := r.Scenario(p, 15*sec, true)
		s.Warmup, s.Arrivals = 5*sec, sim.Poisson(load*r.Best())
		s.Classes[0].LeaveAfter = sim.Fixed(sec)
		report := run(t, s)
		return report.Total.Served()
	}
	is := row{name: name, load: fmt.Sprintf("%.1fx", load), ours: play(adaptive())}
	for _, n := range sizes(r) {
		if answered := play(fixed(n)); answered > is.best {
			is.size, is.best = n, answered
		}
	}
	is.share = is.ours / is.best
	return is
}

// sizes are the workers with the highest recorded rates.
func sizes(r *sim.Recording) (best []int) {
	levels := slices.SortedFunc(slices.Values(r.Levels), func(a, b sim.Level) int { return cmp.Compare(b.Rate, a.Rate) })
	for _, l := range levels[:4] {
		best = append(best, l.Workers)
	}
	return best
}

// watching is a fixed limit that keeps how long work takes.
type watching struct {
	limit.Law

	took []float64 // milliseconds
}

func (w *watching) Observe(s limit.Sample, _ limit.Load) {
	w.took = append(w.took, (s.End-s.Start).Seconds()*1000)
}

// A recorded backend that always has so many calls does what it did for so many workers: the same rate, and the same
// latencies. It changes its rate at once; the step of the recording tells whether the real backend did.
func TestARecordingIsPlayedAsItWas(t *testing.T) {
	soak.WithoutRace(t)
	names, all := recordings(t)
	for i, r := range all {
		for _, l := range r.Levels {
			if l.Workers != 8 && l.Workers != r.StepTo {
				continue
			}
			law := &watching{Law: limit.NewFixed(l.Workers)}
			s := r.Scenario(sim.Limiter(func() limit.Law { return law }, sim.Settings{}), 25*sec, false)
			s.Warmup, s.Arrivals = 10*sec, sim.Poisson(1.5*r.Best())
			// A few writers of SQLite wait for longer than is played here, so that their rate is not exact.
			near(t, fmt.Sprintf("rate of %s with %d calls", names[i], l.Workers), run(t, s).Total.Goodput, l.Rate, .25)
			slices.Sort(law.took)
			t.Logf("%-24s %3d calls: half take at most %.3g ms, nine in ten %.3g, in the recording %.3g and %.3g",
				names[i], l.Workers, law.took[len(law.took)/2], law.took[len(law.took)*9/10], l.Latencies[len(l.Latencies)/2], l.Latencies[len(l.Latencies)*9/10])
		}
		after := 0.
		for _, part := range r.Step {
			after += part / float64(len(r.Step))
		}
		t.Logf("%-24s in the first second after a step it answered %.2f of what it did later", names[i], after)
	}
}
