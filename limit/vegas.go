package limit

import (
	"fmt"
	"math"
	"time"
)

// VegasConfig configures [NewVegas]. The zero value is the published practice.
type VegasConfig struct {
	Alpha float64 // the limit grows below a queue of Alpha x log10(limit); 0: 3
	Beta  float64 // the limit shrinks above a queue of Beta x log10(limit); 0: 6
}

type vegas struct {
	track
	cfg       VegasConfig
	seq       uint64
	base      [Classes]float64 // mean latency without a queue, in nanoseconds; 0: unknown
	win       window
	since     int // windows since the last probe
	probe     probe
	queue     float64
	latencies [2]float64 // mean latency of the last window, and the baseline; 0: unknown
	phase     string
}

// probe is a measurement of the baseline at half the limit.
type probe struct {
	on      bool
	drained bool
	first   uint64  // number of the first admission at half the limit
	back    float64 // the limit to return to
	seen    int     // samples since the probe began
}

// vegasProbe is how many windows are between two measurements of the baseline.
const vegasProbe = 30

// NewVegas returns a law that compares latency with the lowest latency so far. It takes the difference for a queue
// inside the backend, limit x (1 - lowest/now), and keeps the queue between two small bounds. The
// law follows Brakmo and Peterson, "TCP Vegas: New Techniques for Congestion Detection and
// Avoidance" (1994), with the bounds in log10 of the limit as in Netflix concurrency-limits. It
// changes the limit once per window: a round of work in flight, or 30 samples if that is more.
//
// A baseline ages. Published versions replace the baseline by the present latency, queue
// included, so under steady load the limit climbs with every replacement. Here the limit is halved
// for one measured window, whose latency becomes the new baseline. If a tenth of a window was
// refused by a backend or past its deadline, the limit is cut to three quarters.
//
// The queue of the law is never empty, so a backend with few slots gets more work than it has slots.
// A slower backend looks like a queue until the next baseline.
//
// The limit starts at 20 and is at most 1000. The error names an invalid figure.
func NewVegas(cfg VegasConfig) (Law, error) {
	law, err := newVegas(cfg)
	if err != nil {
		return nil, err
	}
	return law, nil
}

func newVegas(cfg VegasConfig) (*vegas, error) {
	if err := checkNumber("Vegas", "Alpha", &cfg.Alpha, 3, 1, 100); err != nil {
		return nil, err
	}
	if err := checkNumber("Vegas", "Beta", &cfg.Beta, max(6, cfg.Alpha), cfg.Alpha, 1000); err != nil {
		return nil, err
	}
	return &vegas{track: newTrack(firstPublished, mostPublished), cfg: cfg, phase: "measuring a baseline"}, nil
}

// Name returns "vegas".
func (v *vegas) Name() string { return "vegas" }

// Admit counts the work and detects when a probe has drained.
func (v *vegas) Admit(_ time.Duration, load Load) {
	v.seq++
	if v.probe.on && !v.probe.drained && load.InFlight <= v.Limit() {
		v.probe.drained, v.probe.first = true, v.seq
	}
}

// Observe records the sample and changes the limit at the end of a window.
func (v *vegas) Observe(s Sample, load Load) {
	if v.probe.on {
		v.probe.seen++
		if !v.probe.drained || s.Seq < v.probe.first {
			v.giveUp()
			return
		}
	}
	v.win.add(s, busy(load, v.value))
	if v.win.total < max(30, v.Limit()) || !v.win.sufficient() {
		v.giveUp()
		return
	}
	w := v.win
	v.win = window{}
	v.since++
	switch {
	case v.probe.on:
		v.rebase(&w)
	case w.overloaded():
		v.phase = "drowning"
		v.move(v.value*3/4, "refused below or past its deadline")
	default:
		v.decide(&w)
	}
}

// Forget drops the baseline of a class.
func (v *vegas) Forget(class uint8) {
	k := class % Classes
	v.base[k] = 0
	v.win.forget(k)
}

// giveUp ends a probe that cannot be measured in time, because the work in flight does not follow
// the limit or gives no information.
func (v *vegas) giveUp() {
	if v.probe.on && v.probe.seen > 100+8*int(v.probe.back) {
		v.endProbe(v.probe.back, "baseline not measurable")
	}
}

func (v *vegas) endProbe(limit float64, phase string) {
	v.probe, v.win, v.since, v.phase = probe{}, window{}, 0, phase
	v.move(limit, phase)
}

// rebase ends a probe and sets the baseline from its window.
func (v *vegas) rebase(w *window) {
	if w.overloaded() {
		v.endProbe(v.value, "drowning")
		return
	}
	w.classes(func(k int, mean, _ float64) { v.base[k] = mean })
	v.endProbe(v.probe.back, "baseline measured")
}

func (v *vegas) decide(w *window) {
	var now, base, n float64
	w.classes(func(k int, mean, m float64) {
		if v.base[k] == 0 || mean < v.base[k] {
			v.base[k] = mean
		}
		now, base, n = now+m*mean, base+m*v.base[k], n+m
	})
	if !w.mostlyBusy() || n == 0 {
		v.phase = "less than half in use"
		return
	}
	now, base = now/n, base/n
	v.latencies = [2]float64{now, base}
	if v.since >= vegasProbe {
		v.phase = "measuring a baseline"
		v.probe = probe{on: true, back: v.value}
		v.move(v.value/2, "measuring a baseline")
		return
	}
	step := max(1, math.Log10(v.value))
	v.queue = math.Ceil(v.value*(1-base/now) - 1e-9)
	switch {
	case v.queue <= step:
		v.phase = "growing fast"
		v.move(v.value+v.cfg.Beta*step, "no queue")
	case v.queue < v.cfg.Alpha*step:
		v.phase = "growing"
		v.move(v.value+step, "a short queue")
	case v.queue > v.cfg.Beta*step:
		v.phase = "shrinking"
		v.move(v.value-step, "a long queue")
	default:
		v.phase = "holding"
	}
}

// State describes what the law is doing, the latencies it compares, and the estimated queue.
func (v *vegas) State() string {
	s := v.phase
	if v.latencies[0] > 0 {
		s += ": " + comparison(v.latencies[0], v.latencies[1])
	}
	if v.queue > 0 {
		s += fmt.Sprintf(", about %.0f queue in the backend", v.queue)
	}
	return s
}
