package sim_test
import ("testing";"fmt";"time";"slices";"flag";"strings";"github.com/spillway-go/spillway/sim";"github.com/spillway-go/spillway/limit")
var dbgSeeds = flag.Int("dseeds", 20, "")
var dbgTrace = flag.Uint64("dtrace", 0, "")
var dbgName = flag.String("dname", "", "")
func TestDbg(t *testing.T) {
	mk := func(slots int, mean time.Duration, b sim.Backend, load func(time.Duration) float64, from, to time.Duration, ch ...sim.Change) *world {
		sc := sim.Scenario{Duration: to, Warmup: from, Backend: b, Changes: ch, Classes: []sim.Class{{Name: "stay", Deadline: sec, Service: sim.LogNormal(mean, 0.1)}}}
		capacity := sc.Capacity()
		sc.Arrivals = sim.Varying(3*capacity, func(t time.Duration) float64 { return load(t) * capacity })
		return &world{sc: sc, slots: slots, to: never}
	}
	flat := func(x float64) func(time.Duration) float64 { return func(time.Duration) float64 { return x } }
	step := func(t time.Duration) float64 { if t < 10*sec { return 0.5 }; return 3 }
	spell := []sim.Change{{At: 3 * sec, Slots: 3}, {At: 8 * sec, Slots: 40}}
	ws := map[string]func(b func(int) sim.Backend) *world{
		"hang": func(b func(int) sim.Backend) *world { return mk(40, 20*ms, b(40), flat(.6), 28*sec, 45*sec, sim.Change{At: 10 * sec, Speed: 0.004}, sim.Change{At: 20 * sec, Speed: 1}) },
		"spell": func(b func(int) sim.Backend) *world { return mk(40, 20*ms, b(40), flat(1.5), 15*sec, 25*sec, spell...) },
		"floor": func(b func(int) sim.Backend) *world { w := mk(40, 20*ms, b(40), flat(1.5), 15*sec, 25*sec, spell...); w.floor = 10; return w },
		"step3x": func(b func(int) sim.Backend) *world { return mk(10, 20*ms, b(10), step, 10*sec, 20*sec) },
		"quiet": func(b func(int) sim.Backend) *world { return mk(100, 100*ms, b(100), func(t time.Duration) float64 { if t < 10*sec { return 1.5 }; return 0.045 }, 30*sec, 50*sec, sim.Change{At: 14*sec, Slots: 4}) },
		"quiet60": func(b func(int) sim.Backend) *world { return mk(100, 100*ms, b(100), func(t time.Duration) float64 { if t < 10*sec { return 1.5 }; return 0.06 }, 30*sec, 50*sec, sim.Change{At: 14*sec, Slots: 4}) },
		"flat": func(b func(int) sim.Backend) *world { return mk(40, 20*ms, b(40), flat(1.5), 15*sec, 25*sec) },
		"flap": func(b func(int) sim.Backend) *world { var ch []sim.Change; for i := 1; i <= 10; i++ { n := 40; if i%2 == 1 { n = 10 }; ch = append(ch, sim.Change{At: time.Duration(i)*5*sec, Slots: n}) }; return mk(40, 20*ms, b(40), flat(.9), 10*sec, 60*sec, ch...) },
	}
	var names []string
	for n := range ws { names = append(names, n) }
	slices.Sort(names)
	for _, name := range names {
		if *dbgName != "" && !strings.HasPrefix(name, strings.Split(*dbgName, "/")[0]) { continue }
		for _, kind := range []string{"nway", "degr"} {
			if strings.Contains(*dbgName, "/") && !strings.HasSuffix(*dbgName, kind) { continue }
			b := sim.NWay
			if kind == "degr" { b = func(n int) sim.Backend { return sim.Degrading(n, 0.5) } }
			if *dbgTrace > 0 {
				w := ws[name](b)
				w.sc.Seed = *dbgTrace
				sc := w.sc
				sc.Record.Interval = 500*ms
				var law *talking
				var sl *surrounded
				sc.Policy = sim.Limiter(func() limit.Law { law = &talking{Adaptive: limit.NewAdaptive()}; sl = &surrounded{Adaptive: law.Adaptive, w: w}; _ = sl; if w.floor+w.cap > 0 { return &tsur{sl} }; return law }, sim.Settings{})
				sc.Record.Watch = func(p sim.Point) { fmt.Printf("   -- %.1fs L %d inflight %d queued %d ok/s %d refused %d %s\n", (p.At + sc.Record.Interval).Seconds(), p.Limit, p.InFlight, p.Queued, 2*p.OK, 2*p.Refused, law.State()) }
				sim.Run(sc)
				continue
			}
			var v, f []float64
			worst, at := 9.0, uint64(0)
			for seed := range uint64(*dbgSeeds) {
				w := ws[name](b)
				w.sc.Seed = seed + 1
				var st string
				ours, fixed := w.play(t, &st)
				v = append(v, ours); f = append(f, fixed)
				if ours < worst { worst, at = ours, seed+1 }
			}
			slices.Sort(v); slices.Sort(f)
			fmt.Printf("%s/%s min %.3f p10 %.3f p25 %.3f med %.3f fixed min %.3f med %.3f worst seed %d\n", name, kind, v[0], v[len(v)/10], v[len(v)/4], v[len(v)/2], f[0], f[len(f)/2], at)
		}
	}
}
type tsur struct{ *surrounded }
func (s *tsur) Observe(e limit.Sample, load limit.Load) { before := s.Adaptive.Limit(); s.surrounded.Observe(e, load); if n := s.Adaptive.Limit(); n != before { fmt.Printf("%7.2fs %4d to %4d  %s\n", e.End.Seconds(), before, n, s.Why()) } }
