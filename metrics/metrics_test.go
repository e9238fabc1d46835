package metrics

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/workerpool"
)

func newLimiter(t *testing.T, cfg limiter.Config) *limiter.Limiter {
	t.Helper()
	lim, err := limiter.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

func newPool(t *testing.T, cfg workerpool.Config) *workerpool.Pool {
	t.Helper()
	pool, err := workerpool.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// read returns the values by name and labels, and the counts of histograms.
func read(t *testing.T, s *Source) map[string]float64 {
	t.Helper()
	values, all := map[string]float64{}, s.Metrics()
	for _, sample := range s.Read() {
		m := all[sample.Metric]
		if len(sample.Labels) != len(m.Labels) {
			t.Fatalf("%s has the labels %q, want %q", m.Name, sample.Labels, m.Labels)
		}
		if isHistogram := len(sample.Counts) > 0; isHistogram != (m.Kind == Histogram) {
			t.Errorf("%s is a %v and has %d buckets", m.Name, m.Kind, len(sample.Counts))
		}
		value := sample.Value
		if m.Kind == Histogram {
			value = 0
		}
		for _, n := range sample.Counts {
			value += float64(n)
		}
		id := m.Name + " " + strings.Join(sample.Labels, " ")
		if _, twice := values[id]; twice {
			t.Errorf("%s is there twice", id)
		}
		values[id] = value
	}
	return values
}

func total(values map[string]float64, prefix string) (sum float64) {
	for id, v := range values {
		if strings.HasPrefix(id, prefix+" ") {
			sum += v
		}
	}
	return sum
}

func TestEveryMetricHasAValue(t *testing.T) {
	pool := newPool(t, workerpool.Config{})
	for _, s := range []*Source{Limiter(newLimiter(t, limiter.Config{})), Pool(pool)} {
		there := map[int]bool{}
		for _, sample := range s.Read() {
			there[sample.Metric] = true
		}
		for i, m := range s.Metrics() {
			if !there[i] {
				t.Errorf("%s has no value", m.Name)
			}
			if m.Help == "" || !strings.HasSuffix(m.Help, ".") || !strings.HasPrefix(m.Name, "spillway.") {
				t.Errorf("%q: %q", m.Name, m.Help)
			}
		}
		read(t, s)
	}
}

// In total and for each priority, every offered request was decided or waits. The priorities sum up
// to the limiter's totals.
func TestOfferedEqualsTheSumOverResultForEachPriority(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			lim := newLimiter(t, limiter.Config{
				Law: limit.NewFixed(1 + rng.IntN(4)), QueueSize: 1 + rng.IntN(5), MaxWait: 300 * time.Millisecond,
				Mode: []limiter.Mode{limiter.Enforce, limiter.DryRun}[rng.IntN(2)],
			})
			source := Limiter(lim)
			offered := map[spillway.Priority]float64{}
			var wg sync.WaitGroup
			for range 200 {
				p := spillway.Priority(rng.IntN(4) - 1)
				offered[p]++
				patience, work := time.Duration(rng.IntN(400))*time.Millisecond, time.Duration(rng.IntN(200))*time.Millisecond
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(spillway.WithPriority(t.Context(), p), patience)
					defer cancel()
					_ = lim.Do(ctx, func(context.Context) error { time.Sleep(work); return nil })
				})
				time.Sleep(time.Duration(rng.IntN(60)) * time.Millisecond)
				check(t, source, offered)
			}
			wg.Wait()
			check(t, source, offered)
			if v := read(t, source); total(v, "spillway.queued_requests")+total(v, "spillway.active_requests")+total(v, "spillway.priority.queued_requests") != 0 {
				t.Errorf("at rest: %v", v)
			}
		})
	}
}

func check(t *testing.T, source *Source, offered map[spillway.Priority]float64) {
	t.Helper()
	synctest.Wait()
	v := read(t, source)
	sum := 0.0
	for p, want := range offered {
		sum += want
		got := v["spillway.priority.queued_requests  "+p.String()]
		for _, result := range []string{"admitted", "cancelled", "rejected"} {
			got += v["spillway.priority.requests  "+p.String()+" "+result]
		}
		if got != want {
			t.Fatalf("%v offered of priority %v, want %v: %v", got, p, want, v)
		}
	}
	if got := total(v, "spillway.requests") + v["spillway.queued_requests "]; got != sum {
		t.Fatalf("%v offered, want %v: %v", got, sum, v)
	}
	if by, all := total(v, "spillway.priority.would_reject"), total(v, "spillway.would_reject"); by != all {
		t.Fatalf("%v would be refused by priority, and %v by reason", by, all)
	}
}

func TestSourcesOfOneNameAreToldApartByKindOnly(t *testing.T) {
	a, again := newLimiter(t, limiter.Config{Name: "a"}), newLimiter(t, limiter.Config{Name: "a"})
	pool := newPool(t, workerpool.Config{Name: "a"})
	if err := Distinct(Limiter(a), Pool(pool)); err != nil {
		t.Error(err)
	}
	if err := Distinct(Limiter(a), Pool(pool), Limiter(again)); err == nil {
		t.Error("two limiters of one name are distinct")
	}
}

// A failure that was counted a moment before the end of its job was once subtracted from the
// successes. Prometheus treated the fall as a restart and counted everything again.
func TestJobsAreCountedByHowTheyEndedAndNoCountFalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ending := make(chan bool)
		pool := newPool(t, workerpool.Config{Name: "mail", MaxWorkers: 1, OnDone: func(workerpool.Result) { ending <- true }})
		source := Pool(pool)
		before := map[string]float64{}
		look := func() {
			synctest.Wait()
			now := read(t, source)
			for id, n := range now {
				if strings.HasPrefix(id, "spillway.pool.jobs ") && n < before[id] {
					t.Errorf("%s fell from %v to %v", id, before[id], n)
				}
			}
			before = now
		}
		for _, job := range []workerpool.Job{
			func(context.Context) error { return nil },
			func(context.Context) error { return errors.New("no route") },
			func(context.Context) error { panic("a bug") },
		} {
			if err := pool.Submit(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			look()
			<-ending
			look()
		}
		if err := pool.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		v := read(t, source)
		if v["spillway.pool.jobs completed"] != 1 || v["spillway.pool.jobs failed"] != 1 || v["spillway.pool.jobs panicked"] != 1 || v["spillway.pool.job.duration "] != 2 {
			t.Errorf("%v", v)
		}
	})
}

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "a", "\xff", strings.Repeat("ä", 100), "a\nb\"c\\", strings.Repeat("\xff", 200)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if !utf8.ValidString(got) || len(got) > longest {
			t.Errorf("%q of %d bytes", got, len(got))
		}
		if clean(got) != got {
			t.Errorf("%q changes again", got)
		}
		if utf8.ValidString(s) && len(s) <= longest && got != s {
			t.Errorf("%q became %q", s, got)
		}
	})
}

func TestASourceOfAnotherKind(t *testing.T) {
	described := []Metric{{Name: "spillway.kiln.heat", Kind: Gauge, Labels: []string{"zone"}}, {Name: "spillway.kiln.time", Kind: Histogram}}
	s := New("kiln", "a\xff", described, func() []Sample {
		return []Sample{
			{Metric: 0, Labels: []string{"t\xff"}, Value: 7},
			{Metric: 0}, {Metric: 0, Labels: []string{"a", "b"}}, {Metric: -1}, {Metric: 2}, {Metric: 1}, // each failed a scrape
		}
	})
	described[0].Name = "altered"
	if kind, name := s.Label(); kind != "kiln" || name != "a�" || s.Metrics()[0].Name != "spillway.kiln.heat" {
		t.Errorf("%s %s %v", kind, name, s.Metrics())
	}
	if all := s.Read(); len(all) != 1 || all[0].Value != 7 || all[0].Labels[0] != "t�" {
		t.Errorf("%v", all)
	}
	if Distinct(s, New("oven", "a\xff", nil, nil)) != nil || Distinct(s, s) == nil {
		t.Error("kind and name tell sources apart")
	}
}

// A nil read function caused a nil dereference in the middle of a scrape.
func TestASourceWithoutAFunctionToReadHasNoSamples(t *testing.T) {
	if got := New("queue", "x", nil, nil).Read(); len(got) != 0 {
		t.Error(got)
	}
}
