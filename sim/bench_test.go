package sim

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limit"
)

var (
	fScen = flag.String("scen", "", "")
	fSeeds = flag.Int("seeds", 3, "")
	fSet = flag.String("set", "visible", "")
	fVerb = flag.Bool("vals", false, "")
	fLaw = flag.String("law", "adaptive", "")
)

func newLaw() limit.Law {
	switch *fLaw {
	case "adaptive":
		return limit.NewAdaptive()
	default:
		return limit.NewFixed(20)
	}
}

func med(v []float64) float64 { slices.Sort(v); return v[len(v)/2] }

func conv(a, ref []int, at time.Duration) float64 {
	sum := func(b []int, from, n int) (x float64) {
		for i := from; i < from+n && i < len(b); i++ {
			x += float64(b[i])
		}
		return
	}
	b0 := int(at / (100 * time.Millisecond))
	for k := 0; k < 170 && b0+k+30 < len(a); k++ {
		if sum(a, b0+k, 10) >= .9*sum(ref, b0+k, 10) && sum(a, b0+k, 30) >= .9*sum(ref, b0+k, 30) {
			return float64(k) / 10
		}
	}
	return 99
}

type row struct {
	s *Scn
	rel, crit, p99 []float64
	peak int
	conv map[string][]float64
}

func TestTable(t *testing.T) {
	list := visible()
	if *fSet == "hidden" {
		list = hidden()
	}
	if *fSet == "all" {
		list = append(list, hidden()...)
	}
	var rows []*row
	for _, s := range list {
		if *fScen != "" && !slices.ContainsFunc(strings.Split(*fScen, ","), func(p string) bool { return strings.Contains(s.Name, p) }) {
			continue
		}
		rows = append(rows, &row{s: s, conv: map[string][]float64{}})
	}
	var wg sync.WaitGroup
	sem := make(chan struct{}, 2)
	for _, r := range rows {
		wg.Go(func() {
			sem <- struct{}{}
			defer func() { <-sem }()
			for seed := 1; seed <= *fSeeds; seed++ {
				c := r.s.Cfg
				c.Seed = uint64(seed)
				c.Oracle = true
				ref := Run(c)
				c.LIFO = true
				if x := Run(c); x.Good > ref.Good {
					ref = x
				}
				c.Oracle, c.Law = false, newLaw()
				if *fLaw == "known" {
					c.Law = limit.NewFixed(c.Slots)
				}
				x := Run(c)
				r.rel = append(r.rel, x.Good/ref.Good)
				r.crit = append(r.crit, x.GoodCrit/ref.GoodCrit)
				r.p99 = append(r.p99, x.P99)
				r.peak = max(r.peak, x.Peak)
				for k, at := range r.s.Steps {
					r.conv[k] = append(r.conv[k], conv(x.Bins, ref.Bins, at))
				}
			}
		})
	}
	wg.Wait()
	var g, cr, n float64
	w, wc, mp, mc := 9.0, 9.0, 0.0, 0.0
	for _, r := range rows {
		a, b, p := med(r.rel), med(r.crit), med(r.p99)
		cs := ""
		for _, k := range []string{"cold", "up", "down", "halved", "restored", "slots"} {
			if v := r.conv[k]; v != nil {
				m := med(v)
				cs += fmt.Sprintf("%s %.1f ", k, m)
				if k != "down" {
					mc = max(mc, m)
				}
			}
		}
		if *fVerb { fmt.Printf("   all values %.3f\n", r.rel) }
		fmt.Printf("%-22s %.3f  %.3f  p99 %4.0f  peak %4d  %s\n", r.s.Name, a, b, p, r.peak, cs)
		g += a; cr += b; n++
		w = min(w, a); wc = min(wc, b)
		if strings.HasPrefix(r.s.Name, "steady/") && r.s.Cfg.MaxRate > 1.2*r.s.Cap {
			mp = max(mp, p)
		}
	}
	fmt.Printf("TOTAL mean %.3f worst %.3f crit %.3f worst %.3f p99 %.0f conv %.1f\n", g/n, w, cr/n, wc, mp, mc)
}
