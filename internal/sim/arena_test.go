package sim_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/laws"
	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/limit"
)

// The arena is a tool for developing a law: it prints, and asserts nothing.
//
//	go test ./internal/sim -v -run TestTable -args -set all -seeds 3
//	go test ./internal/sim -v -run TestTrace -args -scen steady/nway/2x -seeds 1
var (
	arenaScen  = flag.String("scen", "", "arena: only scenarios that contain one of these, comma separated; TestTrace: that begin with it")
	arenaSeeds = flag.Int("seeds", 3, "arena: how many seeds; TestTrace: which one")
	arenaSet   = flag.String("set", "visible", "arena: visible, hidden or all")
	arenaLaw   = flag.String("law", "adaptive", "arena: adaptive, or known: a fixed limit of the backend's slots")
	arenaVals  = flag.Bool("vals", false, "arena: print the goodput of every seed")
)

// skipUnlessNamed skips a tool unless -run names it.
func skipUnlessNamed(t *testing.T) {
	if !strings.Contains(flag.Lookup("test.run").Value.String(), t.Name()) {
		t.Skip("a tool: run it by its name")
	}
}

// arena is a scenario with the moments after which convergence is measured.
type arena struct {
	name  string
	sc    sim.Scenario
	slots int
	over  bool // steady overload
	steps map[string]time.Duration
}

type arenaRow struct {
	arena
	rel, crit, p99 []float64
	peak           int
	conv           map[string][]float64
}

func TestTable(t *testing.T) {
	skipUnlessNamed(t)
	var list []arena
	if *arenaSet != "hidden" {
		list = arenaVisible()
	}
	if *arenaSet != "visible" {
		list = append(list, arenaHidden()...)
	}
	rows := inArena(t, list, *arenaScen, *arenaSeeds, *arenaLaw)
	var good, crit, n float64
	worst, worstCrit, p99, conv := 9.0, 9.0, 0.0, 0.0
	for _, r := range rows {
		a, b, p := median(r.rel), median(r.crit), median(r.p99)
		words := ""
		for _, k := range []string{"cold", "up", "down", "halved", "restored", "slots"} {
			if v := r.conv[k]; v != nil {
				words += fmt.Sprintf("%s %.1f ", k, median(v))
				if k != "down" {
					conv = max(conv, median(v))
				}
			}
		}
		if *arenaVals {
			fmt.Printf("   all values %.3f %v\n", r.rel, r.conv)
		}
		fmt.Printf("%-22s %.3f  %.3f  p99 %4.0f  peak %4d  %s\n", r.name, a, b, p, r.peak, words)
		good, crit, n = good+a, crit+b, n+1
		worst, worstCrit = min(worst, a), min(worstCrit, b)
		if r.over {
			p99 = max(p99, p)
		}
	}
	fmt.Printf("TOTAL mean %.3f worst %.3f crit %.3f worst %.3f p99 %.0f conv %.1f\n", good/n, worst, crit/n, worstCrit, p99, conv)
}

// inArena plays scenarios that contain one of the names under a law.
func inArena(t *testing.T, list []arena, names string, seeds int, law string) (rows []*arenaRow) {
	for _, a := range list {
		if names == "" || slices.ContainsFunc(strings.Split(names, ","), func(p string) bool { return strings.Contains(a.name, p) }) {
			rows = append(rows, &arenaRow{arena: a, conv: map[string][]float64{}})
		}
	}
	var wg sync.WaitGroup
	places := make(chan struct{}, 2)
	for _, r := range rows {
		wg.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			for seed := 1; seed <= seeds; seed++ {
				r.run(t, uint64(seed), law)
			}
		})
	}
	wg.Wait()
	return rows
}

func (r *arenaRow) run(t *testing.T, seed uint64, law string) {
	sc := r.sc
	sc.Seed = seed
	ref, err := yardstick(sc)
	if err != nil {
		t.Error(err)
		return
	}
	sc.Policy = sim.Limiter(limit.NewAdaptive, sim.Settings{})
	if law == "known" {
		sc.Policy = sim.Limiter(func() limit.Law { return limit.NewFixed(r.slots) }, sim.Settings{})
	}
	got, err := sim.Run(sc)
	if err != nil {
		t.Error(err)
		return
	}
	r.rel = append(r.rel, got.Total.Goodput/ref.Total.Goodput)
	r.crit = append(r.crit, got.Classes[0].Goodput/ref.Classes[0].Goodput)
	r.p99 = append(r.p99, float64(got.Total.Latency.Quantile(0.99))/1e6)
	r.peak = max(r.peak, got.Peak)
	for k, at := range r.steps {
		took, ok := converged(&got, &ref, at, 0.9)
		if !ok {
			took = 99 * time.Second
		}
		r.conv[k] = append(r.conv[k], took.Seconds())
	}
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	return v[len(v)/2]
}

// TestTrace prints the timeline of a scenario in steps of half a second, and
// between them the changes of the limit.
func TestTrace(t *testing.T) {
	skipUnlessNamed(t)
	for _, a := range append(arenaVisible(), arenaHidden()...) {
		if *arenaScen == "" || !strings.HasPrefix(a.name, *arenaScen) {
			continue
		}
		fmt.Println("==", a.name)
		a.sc.Seed = uint64(*arenaSeeds)
		var law limit.Law
		a.sc.Policy = sim.Limiter(func() limit.Law {
			law = &tracing{adaptiveLaw: limit.NewAdaptive().(adaptiveLaw)}
			return law
		}, sim.Settings{})
		a.sc.Record.Interval = 500 * time.Millisecond
		a.sc.Record.Watch = func(p sim.Point) {
			fmt.Printf("   -- %.1fs L %d inflight %d queued %d ok/s %d  %s\n", (p.At + a.sc.Record.Interval).Seconds(), p.Limit, p.InFlight, p.Queued, 2*p.OK, laws.ReporterOf(law).State())
		}
		r := run(t, a.sc)
		l := &r.Total.Latency
		fmt.Printf("good %.1f p50 %.0f p99 %.0f\n", r.Total.Goodput, float64(l.Quantile(0.5))/1e6, float64(l.Quantile(0.99))/1e6)
	}
}

// tracing prints every change of the limit as it is made.
type tracing struct{ adaptiveLaw }

func (t *tracing) Observe(s limit.Sample, load limit.Load) {
	before := t.Limit()
	t.adaptiveLaw.Observe(s, load)
	if n := t.Limit(); n != before {
		fmt.Printf("%7.2fs %4d to %4d  %s\n", s.End.Seconds(), before, n, t.Why())
	}
}

// variant holds the settings in which the scenarios of the arena differ. The defaults are 20 slots,
// uniform work of 50 to 100 ms, a deadline of a second and 40 s of load. The last 30 s are
// measured.
type variant struct {
	slots        int
	work         sim.Distribution
	length, warm time.Duration
	load         func(time.Duration) float64 // relative to the capacity
	most         float64
	changes      []sim.Change // their Slots are in percent
	errors       float64
	fast         bool
	deadline     time.Duration
	steps        map[string]time.Duration
	classes      []sim.Class
}

func build(name, kind string, o variant) arena {
	o.slots = cmp.Or(o.slots, 20)
	o.deadline = cmp.Or(o.deadline, time.Second)
	if o.work == nil {
		o.work = sim.Uniform(50*time.Millisecond, 100*time.Millisecond)
	}
	if o.length == 0 {
		o.length, o.warm = 40*time.Second, 10*time.Second
	}
	if o.classes == nil {
		c := sim.Class{Deadline: o.deadline, Service: o.work, ErrorRate: o.errors, FastErrors: o.fast}
		o.classes = []sim.Class{c, c}
		o.classes[0].Share, o.classes[0].Priority = 0.2, spillway.Critical
		o.classes[1].Share, o.classes[1].Priority = 0.8, spillway.Low
	}
	for i := range o.changes {
		o.changes[i].Slots = max(1, int(math.Round(float64(o.slots*o.changes[i].Slots)/100)))
	}
	sc := sim.Scenario{Duration: o.length, Warmup: o.warm, Classes: o.classes, Backend: sim.NWay(o.slots), Changes: o.changes}
	if kind == "degr" {
		sc.Backend = sim.Degrading(o.slots, 0.5)
	}
	full := sc.Capacity()
	sc.Arrivals = sim.Varying(full*o.most, func(t time.Duration) float64 { return full * o.load(t) })
	return arena{name: name, sc: sc, slots: o.slots, steps: maps.Clone(o.steps), over: strings.HasPrefix(name, "steady/") && o.most > 1.2}
}

func flat(x float64) func(time.Duration) float64 { return func(time.Duration) float64 { return x } }

// pulse is high for the first length of every period.
func pulse(low, high float64, length, period time.Duration) func(time.Duration) float64 {
	return func(t time.Duration) float64 {
		if t%period < length {
			return high
		}
		return low
	}
}

const (
	ms  = time.Millisecond
	sec = time.Second
)

var (
	cold     = map[string]time.Duration{"cold": 0}
	halfBack = map[string]time.Duration{"halved": 20 * sec, "restored": 50 * sec}
)

// arenaVisible is the default list.
func arenaVisible() (out []arena) {
	for _, kind := range []string{"nway", "degr"} {
		add := func(name string, o variant) { out = append(out, build(name, kind, o)) }
		for _, x := range []float64{0.5, 0.9, 1, 1.5, 2, 5, 10} {
			add(fmt.Sprintf("steady/%s/%gx", kind, x), variant{load: flat(x), most: x, steps: cold})
		}
		for _, x := range []float64{0.9, 1.5} {
			add(fmt.Sprintf("heavy/%s/%gx", kind, x), variant{work: sim.LogNormal(75*ms, 1.2), load: flat(x), most: x})
		}
		add("loadstep/"+kind, variant{length: 60 * sec, most: 5, load: func(t time.Duration) float64 {
			if t >= 20*sec && t < 40*sec {
				return 5
			}
			return 0.5
		}, steps: map[string]time.Duration{"up": 20 * sec, "down": 40 * sec}})
		add("slow2x/"+kind, variant{length: 70 * sec, load: flat(0.9), most: 0.9, steps: halfBack,
			changes: []sim.Change{{At: 20 * sec, Slots: 100, Speed: 0.5}, {At: 50 * sec, Slots: 100, Speed: 1}}})
		add("slots2/"+kind, variant{length: 70 * sec, load: flat(0.9), most: 0.9, steps: halfBack,
			changes: []sim.Change{{At: 20 * sec, Slots: 50, Speed: 1}, {At: 50 * sec, Slots: 100, Speed: 1}}})
		add("burst100ms/"+kind, variant{most: 5, load: pulse(0.3, 5, 100*ms, 2*sec)})
		add("size200@2x/"+kind, variant{slots: 200, length: 30 * sec, warm: 10 * sec, load: flat(2), most: 2, steps: cold})
	}
	for _, e := range []struct {
		name string
		x    float64
		fast bool
	}{{"err5slow@0.9x", 0.9, false}, {"err5slow@1.5x", 1.5, false}, {"err5fast@1.5x", 1.5, true}} {
		out = append(out, build(e.name+"/nway", "nway", variant{load: flat(e.x), most: e.x, errors: 0.05, fast: e.fast}))
	}
	return out
}

// arenaHidden is the list of all other scenarios that a law must handle.
func arenaHidden() (out []arena) {
	for _, kind := range []string{"nway", "degr"} {
		add := func(name string, o variant) { out = append(out, build(name+"/"+kind, kind, o)) }
		for _, n := range []int{1, 2, 4, 50, 500} {
			length := 40 * sec
			if n == 500 {
				length = 20 * sec
			}
			add(fmt.Sprintf("slots%d@1.5x", n), variant{slots: n, length: length, warm: 10 * sec, load: flat(1.5), most: 1.5, steps: cold})
		}
		add("slots4@0.9x", variant{slots: 4, load: flat(0.9), most: 0.9})
		add("slots4@5x", variant{slots: 4, load: flat(5), most: 5})
		add("slots4halved", variant{slots: 4, length: 70 * sec, load: flat(0.9), most: 0.9, steps: halfBack,
			changes: []sim.Change{{At: 20 * sec, Slots: 100, Speed: 0.5}, {At: 50 * sec, Slots: 100, Speed: 1}}})
		for _, x := range []float64{1.5, 0.9} {
			o := variant{work: sim.Exponential(5 * ms), length: 20 * sec, warm: 5 * sec, deadline: 200 * ms, load: flat(x), most: x}
			if x > 1 {
				o.steps = cold
			}
			add(fmt.Sprintf("exp5ms@%gx", x), o)
		}
		add("exp@1.5x", variant{work: sim.Exponential(75 * ms), load: flat(1.5), most: 1.5})
		add("logn.8@1.5x", variant{work: sim.LogNormal(75*ms, 0.8), load: flat(1.5), most: 1.5})
		for _, x := range []float64{1.5, 0.9} {
			add(fmt.Sprintf("tworoutes@%gx", x), variant{load: flat(x), most: x, classes: []sim.Class{
				{Share: 0.1, Priority: spillway.Critical, Deadline: 2 * sec, Service: sim.Uniform(200*ms, 400*ms)},
				{Share: 0.9, Priority: spillway.Low, Deadline: 2 * sec, Service: sim.Uniform(5*ms, 15*ms)},
			}})
		}
		shortAndLong := sim.Mixture(sim.Part{Share: 9, Service: sim.Exponential(5 * ms)}, sim.Part{Share: 1, Service: sim.LogNormal(80*ms, 1)})
		add("mix100@1.5x", variant{slots: 100, work: shortAndLong, load: flat(1.5), most: 1.5})
		add("ramp", variant{length: 60 * sec, warm: 5 * sec, most: 3, load: func(t time.Duration) float64 { return .3 + 2.7*t.Seconds()/60 }})
		add("wave", variant{length: 60 * sec, warm: 5 * sec, most: 2, load: func(t time.Duration) float64 { return 1 + .9*math.Sin(t.Seconds()) }})
		add("speeds", variant{length: 80 * sec, load: flat(1.5), most: 1.5,
			changes: []sim.Change{{At: 20 * sec, Slots: 100, Speed: 0.5}, {At: 40 * sec, Slots: 100, Speed: 1}, {At: 60 * sec, Slots: 50, Speed: 1}},
			steps:   map[string]time.Duration{"halved": 20 * sec, "restored": 40 * sec, "slots": 60 * sec}})
		add("deadline300@2x", variant{deadline: 300 * ms, load: flat(2), most: 2})
		add("burst3s", variant{length: 60 * sec, most: 3, load: pulse(0.3, 3, 3*sec, 10*sec)})
		add("long600@1.5x", variant{length: 600 * sec, warm: 10 * sec, load: flat(1.5), most: 1.5})
	}
	return out
}

// changing is the adaptive law with a log of its changes.
type changing struct {
	adaptiveLaw
	log []string
}

func (l *changing) Observe(s limit.Sample, load limit.Load) {
	before := l.Limit()
	l.adaptiveLaw.Observe(s, load)
	if n := l.Limit(); n != before {
		l.log = append(l.log, fmt.Sprintf("%.1fs %d to %d: %s", s.End.Seconds(), before, n, l.Why()))
	}
}

// adaptiveLaw is all that the adaptive law can do.
type adaptiveLaw interface {
	limit.Law
	limit.Forgetter
	limit.Reporter
}
