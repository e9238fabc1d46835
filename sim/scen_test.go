package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway"
)

type Scn struct {
	Name    string
	Cfg     Config
	Steps   map[string]time.Duration
	Cap     float64
}

func uni(lo, hi float64) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return time.Duration((lo + (hi-lo)*r.Float64()) * 1e6) }
}
func logn(mean, sigma float64) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration {
		return time.Duration(math.Exp(math.Log(mean*1e6) - sigma*sigma/2 + sigma*r.NormFloat64()))
	}
}

func expo(mean float64) func(*rand.Rand) time.Duration {
	return func(r *rand.Rand) time.Duration { return time.Duration(mean * 1e6 * r.ExpFloat64()) }
}

const sec = time.Second

type opt struct {
	slots    int
	svc      func(*rand.Rand) time.Duration
	mean     float64
	dur, from time.Duration
	load     func(time.Duration) float64
	max      float64
	chg      []Change
	errs     float64
	fast     bool
	deadline time.Duration
	steps    map[string]time.Duration
	classes  []Class
	gamma    float64
}

func mk(name string, deg bool, o opt) *Scn {
	if o.slots == 0 {
		o.slots = 20
	}
	if o.svc == nil {
		o.svc, o.mean = uni(50, 100), 75
	}
	if o.dur == 0 {
		o.dur, o.from = 40*sec, 10*sec
	}
	if o.deadline == 0 {
		o.deadline = sec
	}
	if o.gamma == 0 {
		o.gamma = .5
	}
	capc := float64(o.slots) / o.mean * 1000
	cl := o.classes
	if cl == nil {
		cl = []Class{{.2, spillway.Critical, o.deadline, o.svc, o.errs, o.fast}, {.8, spillway.Low, o.deadline, o.svc, o.errs, o.fast}}
	}
	return &Scn{Name: name, Steps: o.steps, Cap: capc, Cfg: Config{Dur: o.dur, From: o.from, Rate: func(t time.Duration) float64 { return capc * o.load(t) }, MaxRate: capc * o.max,
		Classes: cl, Degrade: deg, Gamma: o.gamma, Slots: o.slots, Changes: o.chg, Mean: time.Duration(o.mean * 1e6)}}
}

func flat(x float64) func(time.Duration) float64 { return func(time.Duration) float64 { return x } }

func visible() (out []*Scn) {
	for _, deg := range []bool{false, true} {
		kind := "nway"
		if deg {
			kind = "degr"
		}
		for _, x := range []float64{0.5, 0.9, 1, 1.5, 2, 5, 10} {
			out = append(out, mk(fmt.Sprintf("steady/%s/%gx", kind, x), deg, opt{load: flat(x), max: x, steps: map[string]time.Duration{"cold": 0}}))
		}
		for _, x := range []float64{0.9, 1.5} {
			out = append(out, mk(fmt.Sprintf("heavy/%s/%gx", kind, x), deg, opt{svc: logn(75, 1.2), mean: 75, load: flat(x), max: x}))
		}
		out = append(out, mk("loadstep/"+kind, deg, opt{dur: 60 * sec, max: 5, load: func(t time.Duration) float64 {
			if t >= 20*sec && t < 40*sec {
				return 5
			}
			return 0.5
		}, steps: map[string]time.Duration{"up": 20 * sec, "down": 40 * sec}}))
		out = append(out, mk("slow2x/"+kind, deg, opt{dur: 70 * sec, load: flat(.9), max: .9, chg: []Change{{20 * sec, 1, .5}, {50 * sec, 1, 1}}, steps: map[string]time.Duration{"halved": 20 * sec, "restored": 50 * sec}}))
		out = append(out, mk("slots2/"+kind, deg, opt{dur: 70 * sec, load: flat(.9), max: .9, chg: []Change{{20 * sec, .5, 1}, {50 * sec, 1, 1}}, steps: map[string]time.Duration{"halved": 20 * sec, "restored": 50 * sec}}))
		out = append(out, mk("burst100ms/"+kind, deg, opt{max: 5, load: func(t time.Duration) float64 {
			if t%(2*sec) < 100*time.Millisecond {
				return 5
			}
			return .3
		}}))
		out = append(out, mk("size200@2x/"+kind, deg, opt{slots: 200, dur: 30 * sec, from: 10 * sec, load: flat(2), max: 2, steps: map[string]time.Duration{"cold": 0}}))
	}
	for _, e := range []struct {
		n string
		x float64
		f bool
	}{{"err5slow@0.9x", .9, false}, {"err5slow@1.5x", 1.5, false}, {"err5fast@1.5x", 1.5, true}} {
		out = append(out, mk(e.n+"/nway", false, opt{load: flat(e.x), max: e.x, errs: .05, fast: e.f}))
	}
	return out
}

// other scenarios nobody listed
func hidden() (out []*Scn) {
	for _, deg := range []bool{false, true} {
		kind := "nway"
		if deg {
			kind = "degr"
		}
		for _, n := range []int{1, 2, 4, 50, 500} {
			d := 40 * sec
			if n == 500 {
				d = 20 * sec
			}
			out = append(out, mk(fmt.Sprintf("slots%d@1.5x/%s", n, kind), deg, opt{slots: n, dur: d, from: 10 * sec, load: flat(1.5), max: 1.5, steps: map[string]time.Duration{"cold": 0}}))
		}
		out = append(out, mk("slots4@0.9x/"+kind, deg, opt{slots: 4, load: flat(.9), max: .9}))
		out = append(out, mk("slots4@5x/"+kind, deg, opt{slots: 4, load: flat(5), max: 5}))
		out = append(out, mk("slots4halved/"+kind, deg, opt{slots: 4, dur: 70 * sec, load: flat(.9), max: .9, chg: []Change{{20 * sec, 1, .5}, {50 * sec, 1, 1}}, steps: map[string]time.Duration{"halved": 20 * sec, "restored": 50 * sec}}))
		out = append(out, mk("exp5ms@1.5x/"+kind, deg, opt{svc: expo(5), mean: 5, dur: 20 * sec, from: 5 * sec, deadline: 200 * time.Millisecond, load: flat(1.5), max: 1.5, steps: map[string]time.Duration{"cold": 0}}))
		out = append(out, mk("exp5ms@0.9x/"+kind, deg, opt{svc: expo(5), mean: 5, dur: 20 * sec, from: 5 * sec, deadline: 200 * time.Millisecond, load: flat(.9), max: .9}))
		out = append(out, mk("exp@1.5x/"+kind, deg, opt{svc: expo(75), mean: 75, load: flat(1.5), max: 1.5}))
		out = append(out, mk("logn.8@1.5x/"+kind, deg, opt{svc: logn(75, .8), mean: 75, load: flat(1.5), max: 1.5}))
		two := []Class{{.1, spillway.Critical, 2 * sec, uni(200, 400), 0, false}, {.9, spillway.Low, 2 * sec, uni(5, 15), 0, false}}
		out = append(out, mk("tworoutes@1.5x/"+kind, deg, opt{mean: 39, svc: uni(1, 2), classes: two, load: flat(1.5), max: 1.5}))
		out = append(out, mk("tworoutes@0.9x/"+kind, deg, opt{mean: 39, svc: uni(1, 2), classes: two, load: flat(.9), max: .9}))
		out = append(out, mk("ramp/"+kind, deg, opt{dur: 60 * sec, from: 5 * sec, max: 3, load: func(t time.Duration) float64 { return .3 + 2.7*t.Seconds()/60 }}))
		out = append(out, mk("wave/"+kind, deg, opt{dur: 60 * sec, from: 5 * sec, max: 2, load: func(t time.Duration) float64 { return 1 + .9*math.Sin(t.Seconds()) }}))
		out = append(out, mk("speeds/"+kind, deg, opt{dur: 80 * sec, load: flat(1.5), max: 1.5, chg: []Change{{20 * sec, 1, .5}, {40 * sec, 1, 1}, {60 * sec, .5, 1}},
			steps: map[string]time.Duration{"halved": 20 * sec, "restored": 40 * sec, "slots": 60 * sec}}))
		out = append(out, mk("deadline300@2x/"+kind, deg, opt{deadline: 300 * time.Millisecond, load: flat(2), max: 2}))
		out = append(out, mk("burst3s/"+kind, deg, opt{dur: 60 * sec, max: 3, load: func(t time.Duration) float64 {
			if t%(10*sec) < 3*sec {
				return 3
			}
			return .3
		}}))
		out = append(out, mk("long600@1.5x/"+kind, deg, opt{dur: 600 * sec, from: 10 * sec, load: flat(1.5), max: 1.5}))
	}
	return out
}
