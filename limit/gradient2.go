package limit

import (
	"fmt"
	"time"
)

// Gradient2Config configures [Gradient2]. The zero value is the published practice, except for
// the lower bound of the limit: 1 instead of 20.
type Gradient2Config struct {
	Initial   int           // 0: 20
	Max       int           // 0: 1000
	Tolerance float64       // multiple of its long mean to which latency may rise; 0: 1.5
	Queue     float64       // slots that each window adds to the target limit; 0: 4
	Smoothing float64       // share of the way to the target limit per window; 0: 0.2
	Long      int           // windows in the long mean; 0: 600
	Window    time.Duration // shortest window; 0: 1 s
}

// Gradient2 compares the mean latency of a window with an exponential mean over many windows.
// While the short mean is below a tolerated multiple of the long mean, the limit grows by a small
// queue. Otherwise the limit shrinks in proportion, at most by half. Both changes are smoothed.
// The law follows Gradient2Limit of Netflix concurrency-limits, with each class compared with
// itself. A window in which a tenth of the work was refused by a backend or past its deadline
// counts as the steepest gradient; the original ignores such outcomes.
//
// The only baseline of Gradient2 is past latency. Slowly rising latency or a lasting queue becomes
// the norm, and the limit drifts up with it.
type Gradient2 struct {
	track
	cfg   Gradient2Config
	long  [Classes]float64
	seen  [Classes]float64 // number of windows in long
	win   window
	phase string
	took  [2]float64 // mean latency of the last window, and of many windows; 0: unknown
}

const (
	steepest = 0.5
	warmUp   = 10 // first windows, which enter the long mean with equal weight
)

// NewGradient2 returns the law, or an error that names an invalid figure.
func NewGradient2(cfg Gradient2Config) (*Gradient2, error) {
	if err := bounds("Gradient2", &cfg.Initial, &cfg.Max); err != nil {
		return nil, err
	}
	if err := figure("Gradient2", "Tolerance", &cfg.Tolerance, 1.5, 1, 100); err != nil {
		return nil, err
	}
	if err := figure("Gradient2", "Queue", &cfg.Queue, 4, 0.1, 1000); err != nil {
		return nil, err
	}
	if err := figure("Gradient2", "Smoothing", &cfg.Smoothing, 0.2, 0.001, 1); err != nil {
		return nil, err
	}
	if cfg.Long == 0 {
		cfg.Long = 600
	}
	if cfg.Long < 1 {
		return nil, fmt.Errorf("limit: Gradient2: Long is %d, want at least 1 window, or 0 for 600", cfg.Long)
	}
	if cfg.Window < 0 {
		return nil, fmt.Errorf("limit: Gradient2: Window is %v, want a positive time, or 0 for 1s", cfg.Window)
	}
	if cfg.Window == 0 {
		cfg.Window = time.Second
	}
	return &Gradient2{track: newTrack(cfg.Initial, cfg.Max), cfg: cfg, phase: "measuring"}, nil
}

// Name returns "gradient2".
func (g *Gradient2) Name() string { return "gradient2" }

// Admit does nothing: the law uses only ends of work.
func (g *Gradient2) Admit(time.Duration, Load) {}

// Observe records the sample and changes the limit at the end of a window.
func (g *Gradient2) Observe(s Sample, load Load) {
	g.win.add(s, busy(load, g.value))
	if s.End-g.win.began < g.cfg.Window || !g.win.telling() {
		return
	}
	w := g.win
	g.win = window{}
	if w.drowned() {
		g.phase, g.took = "drowning", [2]float64{}
		g.toward(g.value*steepest, "refused below or past its deadline")
		return
	}
	var slope, short, long, n float64
	w.classes(func(k int, mean, m float64) {
		ratio := g.learn(k, mean) / mean
		slope, n = slope+m*ratio, n+m
		short, long = short+m*mean, long+m*g.long[k]
	})
	if n == 0 || !w.full() {
		g.phase = "less than half in use"
		return
	}
	g.took = [2]float64{short / n, long / n}
	slope = min(max(g.cfg.Tolerance*slope/n, steepest), 1)
	if slope == 1 {
		g.phase = "growing"
		g.toward(g.value+g.cfg.Queue, "latency as ever")
	} else {
		g.phase = "latency rises"
		g.toward(g.value*slope+g.cfg.Queue, "latency rises")
	}
}

// learn adds the mean of a window to the long mean of a class and returns the long mean.
func (g *Gradient2) learn(k int, mean float64) float64 {
	g.seen[k] = min(g.seen[k]+1, warmUp+1)
	weight := 1 / g.seen[k]
	if g.seen[k] > warmUp {
		weight = 2 / float64(g.cfg.Long+1)
	}
	g.long[k] += min(weight, 1) * (mean - g.long[k])
	ratio := g.long[k]
	if ratio > 2*mean { // after an overload the long mean falls faster
		g.long[k] *= 0.95
	}
	return ratio
}

// Forget drops the long mean of a class.
func (g *Gradient2) Forget(class uint8) {
	k := class % Classes
	g.long[k], g.seen[k] = 0, 0
	g.win.forget(k)
}

// toward moves the limit a share of the way to a target.
func (g *Gradient2) toward(to float64, why string) {
	g.move(g.value+g.cfg.Smoothing*(to-g.value), why)
}

// State describes the movement of latency against its long mean.
func (g *Gradient2) State() string {
	if g.took[0] > 0 {
		return g.phase + ": " + against(g.took[0], g.took[1])
	}
	return g.phase
}
