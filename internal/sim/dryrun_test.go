package sim

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/laws"
	"github.com/spillway-go/spillway/internal/refusal"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/limit"
)

// played is the report of a run.
func played(t *testing.T, s Scenario) Report {
	t.Helper()
	r, err := Run(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// dryRun is the limiter in dry-run mode: it admits every call and counts.
type dryRun struct {
	gated
	before [limit.Classes]gate.Counts // at the end of the warm-up, by priority
	warm   bool
}

func (p *dryRun) arrive(c *call) {
	if c.tally != nil && !p.warm {
		p.warm = true
		for i := range p.before {
			p.before[i] = p.gate.CountsOf(spillway.Critical - spillway.Priority(i))
		}
	}
	p.gate.Force(p.run.now, gate.Arrival{Cost: c.class.Cost, Priority: c.class.Priority, Deadline: c.deadline}, true, 0)
	p.admit(c)
}

func dryPolicy(law limit.Law, p **dryRun) Policy {
	return Policy{build: func(at *replica) (admitter, error) {
		*p = &dryRun{gated: gated{run: at.run, advice: refusal.NewTable(1), maxWait: defaultMaxWait, gate: gate.New(gate.Config{
			Law: law, QueueSize: defaultQueue, MaxWait: defaultMaxWait,
		})}}
		return *p, nil
	}}
}

// dry runs s without enforcement. It returns the share of each class that would have been refused,
// the share of all calls, and whether the gate marks the estimate as unsafe.
func dry(t *testing.T, s Scenario, law limit.Law) (classes []float64, all float64, unsafe bool) {
	t.Helper()
	var p *dryRun
	s.Policy = dryPolicy(law, &p)
	r := played(t, s)
	if r.Total.Refused > 0 {
		t.Errorf("%d were refused", r.Total.Refused)
	}
	would, offered := 0.0, 0.0
	for _, c := range s.Classes {
		before, after := p.before[spillway.Critical-c.Priority], p.gate.CountsOf(c.Priority)
		w, o := float64(after.WouldReject()-before.WouldReject()), float64(after.Offered-before.Offered)
		classes = append(classes, w/o)
		would, offered = would+w, offered+o
	}
	_, unsafe = p.gate.Estimate()
	return classes, would / offered, unsafe
}

// Few returns all cases, or only the last case under the race detector. The detector makes a
// simulation ten times as slow, and finds little in one goroutine. The gate runs all cases
// without the detector. Tests outside this package use Few, too.
func Few[T any](all ...T) []T {
	if raceEnabled {
		return all[len(all)-1:]
	}
	return all
}

// refusedOf returns the share of calls that were refused or left while waiting.
func refusedOf(t Tally) float64 { return float64(t.Refused+t.Left) / float64(t.Offered) }

// The share that a dry run predicts is close to the share refused once the limit is enforced,
// although the dry run refuses nothing and the backend always has a queue. A backend that thrashes
// collapses before its capacity is known: there the prediction may be too high, never too low, and
// is marked as unsafe. For an N-way backend it is never marked.
func TestADryRunPredictsWhatEnforcingRefuses(t *testing.T) {
	sudden := func(c, load float64) Arrivals { return Steps(Step{0, c / 4}, Step{20 * time.Second, load * c}) }
	slow := func(c, load float64) Arrivals {
		return Varying(max(load, 1)*c, func(t time.Duration) float64 {
			return c * (0.25 + (load-0.25)*min(t.Seconds()/25, 1))
		})
	}
	for _, on := range Few([]struct {
		name     string
		backend  Backend
		arrivals func(capacity, load float64) Arrivals
	}{
		{"8-way", NWay(8), sudden},
		{"8-way, slowly", NWay(8), slow},
		{"sharing", Degrading(8, 0), sudden},
		{"sharing, slowly", Degrading(8, 0), slow},
		{"degrading, slowly", Degrading(8, 0.2), slow},
		{"thrashing", Degrading(8, 0.5), sudden},
		{"thrashing, slowly", Degrading(8, 0.5), slow},
	}...) {
		for _, load := range Few(0.5, 0.9, 1.2, 5, 2) {
			s := Scenario{
				Seed: 1, Duration: 45 * time.Second, Warmup: 30 * time.Second, Backend: on.backend,
				Classes: []Class{{Deadline: time.Second, Service: Exponential(20 * time.Millisecond)}},
			}
			s.Arrivals = on.arrivals(s.Capacity(), load)
			t.Run(fmt.Sprintf("%s at %v", on.name, load), func(t *testing.T) {
				law := limit.NewPassive()
				_, would, unsafe := dry(t, s, law)
				var refused, offered uint64 // of three runs: failed trials of the law may cost a tenth in one run
				for s.Seed = 1; s.Seed <= 3; s.Seed++ {
					r := played(t, s)
					refused, offered = refused+uint64(r.Total.Refused+r.Total.Left), offered+uint64(r.Total.Offered)
				}
				did := float64(refused) / float64(offered)
				told := fmt.Sprintf("a dry run says %.2f would be refused (unsafe: %v), enforcing refuses %.2f: %s", would, unsafe, did, laws.ReporterOf(law).State())
				t.Log(told)
				if would < did-0.1 || would > did+0.1 && !unsafe || unsafe && strings.HasPrefix(on.name, "8-way") {
					t.Error(told)
				}
			})
		}
	}
}

// The share is also right, and called safe, where other traffic made it hard to tell: callers that leave or
// whose deadlines are short or unknown, bursts, mixed work, and a backend that is slow, but not too slow.
func TestADryRunPredictsForAnyTraffic(t *testing.T) {
	work := Exponential(20 * time.Millisecond)
	step := func(load float64) func(float64) Arrivals {
		return func(c float64) Arrivals { return Steps(Step{0, 0.3 * c}, Step{20 * time.Second, load * c}) }
	}
	burst := func(c float64) Arrivals { return Bursts(0.5*c, 3*c, 500*time.Millisecond, 5*time.Second) }
	leaving := Class{LeaveAfter: Exponential(2 * time.Second), Service: work}
	within := func(d time.Duration) []Class { return []Class{{Deadline: d, Service: work}} }
	mixed := []Class{
		{Share: 8, Deadline: time.Second, Service: LogNormal(5*time.Millisecond, 0.5)},
		{Share: 2, Deadline: 8 * time.Second, Service: LogNormal(100*time.Millisecond, 0.5)},
	}
	for _, c := range Few([]struct {
		name     string
		slots    int
		arrivals func(capacity float64) Arrivals
		classes  []Class
		change   func(*Scenario)
	}{
		{"slow, at 0.15", 8, step(0.15), within(time.Second), func(s *Scenario) { s.Changes = []Change{{At: 30 * time.Second, Speed: 0.25}} }},
		{"callers leave, at 0.8", 8, step(0.8), []Class{leaving}, nil},
		{"callers leave, at 3", 8, step(3), []Class{leaving}, nil},
		{"short deadlines, at 1.5", 40, step(1.5), within(150 * time.Millisecond), nil},
		{"no deadlines, at 3", 8, step(3), within(0), nil},
		{"unknown deadlines, at 1.5", 8, step(1.5), within(time.Second), func(s *Scenario) { s.Oblivious = true }},
		{"mixed work, at 3", 8, step(3), mixed, nil},
		{"constant times, at 3", 8, step(3), []Class{{Deadline: time.Second, Service: Fixed(20 * time.Millisecond)}}, nil},
		{"bursts", 8, burst, within(time.Second), nil},
	}...) {
		s := Scenario{Seed: 1, Duration: 45 * time.Second, Warmup: 25 * time.Second, Backend: NWay(c.slots), Classes: c.classes}
		s.Arrivals = c.arrivals(s.Capacity())
		if c.change != nil {
			c.change(&s)
		}
		_, would, unsafe := dry(t, s, limit.NewPassive())
		r := played(t, s)
		if did := refusedOf(r.Total); unsafe || math.Abs(would-did) > 0.1 || did == 0 && would > 0.02 {
			t.Errorf("%s: a dry run says %.3f would be refused (unsafe: %v), enforcing refuses %.3f", c.name, would, unsafe, did)
		}
	}
}

// The prediction also holds for a custom law whose limit fits the backend, is too small or is too
// large.
func TestADryRunPredictsForAnyLaw(t *testing.T) {
	for _, slots := range Few(8, 4, 40) {
		for _, load := range []float64{0.9, 2, 5} {
			s := Scenario{
				Seed: 1, Duration: 45 * time.Second, Warmup: 30 * time.Second, Backend: NWay(8),
				Classes: []Class{{Deadline: time.Second, Service: Exponential(20 * time.Millisecond)}},
			}
			s.Arrivals = Steps(Step{0, 0.25 * s.Capacity()}, Step{20 * time.Second, load * s.Capacity()})
			_, would, _ := dry(t, s, limit.NewFixed(slots))
			s.Policy = Limiter(func() limit.Law { return limit.NewFixed(slots) }, Settings{})
			r := played(t, s)
			if did := refusedOf(r.Total); would < did-0.1 || would > did+0.1 {
				t.Errorf("limit %d at %v: a dry run says %.2f would be refused, enforcing refuses %.2f", slots, load, would, did)
			}
		}
	}
}

// threePriorities is a scenario of callers of three priorities. Their load rises for 20 s to load
// times the capacity of the backend.
func threePriorities(seed uint64, b Backend, load float64) Scenario {
	service := Exponential(20 * time.Millisecond)
	s := Scenario{
		Seed: seed, Duration: 40 * time.Second, Warmup: 22 * time.Second, Backend: b,
		Classes: []Class{
			{Name: "critical", Priority: spillway.Critical, Share: 1, Deadline: time.Second, Service: service},
			{Name: "normal", Priority: spillway.Normal, Share: 3, Deadline: time.Second, Service: service},
			{Name: "low", Priority: spillway.Low, Share: 2, Deadline: time.Second, Service: service},
		},
	}
	c := s.Capacity()
	s.Arrivals = Varying(max(load, 1)*c, func(t time.Duration) float64 {
		return c * (0.3 + (load-0.3)*min(t.Seconds()/20, 1))
	})
	return s
}

// The least important calls are refused first, in a dry run as when enforced. A dry run used to
// model one queue for all priorities.
func TestADryRunPredictsForEachPriority(t *testing.T) {
	const seeds = 3
	for _, on := range Few([]struct {
		slots      int
		load, most float64 // most is the largest permitted error of the prediction
	}{
		{8, 0.7, 0.1}, {8, 0.9, 0.2}, {8, 2, 0.1}, {8, 3, 0.1}, {20, 2, 0.1},
		{8, 1.5, 0.2}, // one priority gets so little capacity that small errors count much
	}...) {
		t.Run(fmt.Sprintf("%d-way at %v", on.slots, on.load), func(t *testing.T) {
			var off [3]float64
			for seed := range uint64(seeds) {
				s := threePriorities(seed+1, NWay(on.slots), on.load)
				would, _, unsafe := dry(t, s, limit.NewPassive())
				if unsafe {
					t.Errorf("seed %d: the estimate is called unsafe", seed+1)
				}
				r := played(t, s)
				for i := range off {
					did := refusedOf(r.Classes[i])
					t.Logf("seed %d, %s: a dry run says %.3f would be refused, enforcing refuses %.3f", seed+1, r.Classes[i].Name, would[i], did)
					off[i] += math.Abs(would[i]-did) / seeds
				}
			}
			for i, d := range off {
				if d > on.most {
					t.Errorf("class %d: %.3f off on average", i, d)
				}
			}
		})
	}
}

// Without deadlines nothing is late, and the queue grows without end. A backend that thrashes, or has become
// slower, does less than before.
func TestADryRunDoubtsAFallOfThroughput(t *testing.T) {
	for _, c := range []struct {
		backend Backend
		load    float64
		changes []Change
	}{{Degrading(8, 0.5), 1.5, nil}, {NWay(8), 0.5, []Change{{At: 20 * time.Second, Speed: 0.25}}}} {
		s := Scenario{
			Seed: 1, Duration: 40 * time.Second, Warmup: 25 * time.Second, Backend: c.backend, Changes: c.changes,
			Classes: []Class{{Service: Exponential(20 * time.Millisecond)}},
		}
		s.Arrivals = Steps(Step{0, 0.4 * s.Capacity()}, Step{20 * time.Second, c.load * s.Capacity()})
		if _, would, unsafe := dry(t, s, limit.NewPassive()); would < 0.4 || !unsafe {
			t.Errorf("%.2f would be refused, unsafe: %v", would, unsafe)
		}
	}
}

// A backend whose throughput falls under load collapses without protection. A dry run cannot
// measure what the backend would do behind a limit. It must mark its estimate as unsafe, even if
// the load jumps past the best concurrency at once.
func TestADryRunSaysThatItsEstimateIsUnsafe(t *testing.T) {
	soak.WithoutRace(t)
	suddenly := func(seed uint64, b Backend, load float64) Scenario {
		s := threePriorities(seed, b, load)
		s.Arrivals = Steps(Step{0, 0.3 * s.Capacity()}, Step{20 * time.Second, load * s.Capacity()})
		return s
	}
	cold := func(seed uint64, b Backend, load float64) Scenario {
		s := threePriorities(seed, b, load)
		s.Arrivals = Poisson(load * s.Capacity())
		return s
	}
	for _, on := range Few([]struct {
		name  string
		make  func(uint64, Backend, float64) Scenario
		slots int
		loads []float64
	}{
		{"slowly", threePriorities, 20, []float64{0.9, 1.2, 2, 3}},
		{"suddenly", suddenly, 8, []float64{2}}, {"suddenly", suddenly, 20, []float64{3}},
		{"cold", cold, 20, []float64{3}}, {"cold", cold, 8, []float64{2}},
	}...) {
		for _, load := range on.loads {
			for _, b := range []struct {
				backend Backend
				falls   bool
			}{{Degrading(on.slots, 0.2), true}, {Degrading(on.slots, 0.5), true}, {NWay(on.slots), false}} {
				if _, all, unsafe := dry(t, on.make(1, b.backend, load), limit.NewPassive()); unsafe != b.falls {
					t.Errorf("%s, %d slots, gamma %v at %v: %.2f would be refused, unsafe: %v", on.name, on.slots, b.backend.gamma, load, all, unsafe)
				}
			}
		}
	}
}
