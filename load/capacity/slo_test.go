package capacity

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestAnSLOIsRead(t *testing.T) {
	got, err := ParseSLO(" p99.9=1s, p50 = 20ms,errors=0.1%")
	want := SLO{Latency: []Bound{{"p50", .5, 20 * time.Millisecond}, {"p99.9", .999, time.Second}}, Errors: .001, Rejected: .01}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if s := got.String(); s != "p50=20ms,p99.9=1s,errors=0.1%,rejected=1%" {
		t.Errorf("written as %q", s)
	}
}

func TestABadSLOSaysWhatIsAllowed(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "has no =",
		"p99":                 "has no =",
		"p99=200ms,":          "has no =",
		"p98=200ms":           "want p50, p90, p99, p99.9, errors or rejected",
		"p99=200":             "want a time",
		"p99=0s":              "want a time",
		"p99=-1ms":            "want a time",
		"errors=1":            "no percentage",
		"errors=NaN%":         "no percentage",
		"rejected=101%":       "no percentage",
		"errors=1%,errors=2%": "twice",
	} {
		if _, err := ParseSLO(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzParseSLO(f *testing.F) {
	for _, text := range []string{"p99=200ms,errors=0.1%", "p50=1h,p90=2h,p99.9=1us,rejected=100%", "errors=0%", "errors=1e-9%", "="} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		slo, err := ParseSLO(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") && !strings.Contains(text, "\n") {
				t.Errorf("the error %q has several lines", err)
			}
			return
		}
		again, err := ParseSLO(slo.String())
		if err != nil || again.String() != slo.String() {
			t.Errorf("%q is written as %q, which is read as %q, %v", text, slo, again, err)
		}
	})
}

func TestWhatChanceExplainsBreaksNoSLO(t *testing.T) {
	for _, c := range []struct {
		k, n   uint64
		share  float64
		beyond bool
	}{
		{0, 0, .01, false}, {0, 100, 0, false}, {1, 100, 0, true}, {5, 5, 1, false},
		{1, 15, .01, false}, {2, 15, .01, true}, {10, 1000, .01, false}, {12, 1000, .01, false}, {20, 1000, .01, true},
		{1100, 100_000, .01, true}, {5, 5, .01, true},
	} {
		if got := beyondChance(c.k, c.n, c.share); got != c.beyond {
			t.Errorf("%d of %d at %v: %v", c.k, c.n, c.share, got)
		}
	}
	// A service that has exactly the allowed share is accused in at most one probe of 20.
	rng := rand.New(rand.NewPCG(1, 2))
	const probes, n, share = 2000, 700, .01
	accused := 0
	for range probes {
		k := uint64(0)
		for range n {
			if rng.Float64() < share {
				k++
			}
		}
		if beyondChance(k, n, share) {
			accused++
		}
	}
	if accused > probes*6/100 || accused == 0 {
		t.Errorf("accused in %d of %d probes", accused, probes)
	}
}
