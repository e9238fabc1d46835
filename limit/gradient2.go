package limit

import "time"

// Gradient2Config configures [NewGradient2]. The zero value is the published practice.
type Gradient2Config struct {
	Tolerance float64 // multiple of its long mean to which latency may rise; 0: 1.5
}

type gradient2 struct {
	track
	tolerance float64
	long      [Classes]float64
	seen      [Classes]float64 // number of windows in long
	win       window
	phase     string
	latencies [2]float64 // mean latency of the last window, and of many windows; 0: unknown
}

const (
	steepest = 0.5
	warmUp   = 10 // first windows, which enter the long mean with equal weight

	gradientWindow = time.Second // the shortest window
	gradientLong   = 600         // windows in the long mean
	gradientQueue  = 4           // slots that each window adds to the target limit
	gradientShare  = 0.2         // share of the way to the target limit per window
)

// NewGradient2 returns a law that compares the mean latency of a window with an exponential mean over many windows.
// While the short mean is below a tolerated multiple of the long mean, the limit grows by a small
// queue. Otherwise the limit shrinks in proportion, at most by half. Both changes are smoothed.
// The law follows Gradient2Limit of Netflix concurrency-limits, with each class compared with
// itself and a lower bound of 1 instead of 20. A window in which a tenth of the work was refused by a backend or past its deadline
// counts as the steepest gradient; the original ignores such outcomes.
//
// The only baseline of the law is past latency. Slowly rising latency or a lasting queue becomes
// the norm, and the limit drifts up with it.
//
// The limit starts at 20 and is at most 1000. The error names an invalid figure.
func NewGradient2(cfg Gradient2Config) (Law, error) {
	law, err := newGradient2(cfg)
	if err != nil {
		return nil, err
	}
	return law, nil
}

func newGradient2(cfg Gradient2Config) (*gradient2, error) {
	if err := checkNumber("Gradient2", "Tolerance", &cfg.Tolerance, 1.5, 1, 100); err != nil {
		return nil, err
	}
	return &gradient2{track: newTrack(firstPublished, mostPublished), tolerance: cfg.Tolerance, phase: "measuring"}, nil
}

// Name returns "gradient2".
func (g *gradient2) Name() string { return "gradient2" }

// Admit does nothing: the law uses only ends of work.
func (g *gradient2) Admit(time.Duration, Load) {}

// Observe records the sample and changes the limit at the end of a window.
func (g *gradient2) Observe(s Sample, load Load) {
	g.win.add(s, busy(load, g.value))
	if s.End-g.win.began < gradientWindow || !g.win.sufficient() {
		return
	}
	w := g.win
	g.win = window{}
	if w.overloaded() {
		g.phase, g.latencies = "drowning", [2]float64{}
		g.toward(g.value*steepest, "refused below or past its deadline")
		return
	}
	var slope, short, long, n float64
	w.classes(func(k int, mean, m float64) {
		ratio := g.learn(k, mean) / mean
		slope, n = slope+m*ratio, n+m
		short, long = short+m*mean, long+m*g.long[k]
	})
	if n == 0 || !w.mostlyBusy() {
		g.phase = "less than half in use"
		return
	}
	g.latencies = [2]float64{short / n, long / n}
	slope = min(max(g.tolerance*slope/n, steepest), 1)
	if slope == 1 {
		g.phase = "growing"
		g.toward(g.value+gradientQueue, "latency as ever")
	} else {
		g.phase = "latency rises"
		g.toward(g.value*slope+gradientQueue, "latency rises")
	}
}

// learn adds the mean of a window to the long mean of a class and returns the long mean.
func (g *gradient2) learn(k int, mean float64) float64 {
	g.seen[k] = min(g.seen[k]+1, warmUp+1)
	weight := 1 / g.seen[k]
	if g.seen[k] > warmUp {
		weight = 2. / (gradientLong + 1)
	}
	g.long[k] += min(weight, 1) * (mean - g.long[k])
	ratio := g.long[k]
	if ratio > 2*mean { // after an overload the long mean falls faster
		g.long[k] *= 0.95
	}
	return ratio
}

// Forget drops the long mean of a class.
func (g *gradient2) Forget(class uint8) {
	k := class % Classes
	g.long[k], g.seen[k] = 0, 0
	g.win.forget(k)
}

// toward moves the limit a share of the way to a target.
func (g *gradient2) toward(to float64, why string) {
	g.move(g.value+gradientShare*(to-g.value), why)
}

// State describes the movement of latency against its long mean.
func (g *gradient2) State() string {
	if g.latencies[0] > 0 {
		return g.phase + ": " + comparison(g.latencies[0], g.latencies[1])
	}
	return g.phase
}
