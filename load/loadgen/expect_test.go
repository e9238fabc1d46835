package loadgen

import (
	"strings"
	"testing"
	"time"
)

// sample is a result with known figures: ok 1..100 ms, 50 refused in 10 to 59 µs,
// 50 errors, in 10 s.
func sample() *Result {
	r := &Result{Offered: 200, Elapsed: 10 * time.Second}
	for i := range 100 {
		r.Outcomes[OK].Latency.Record(int64(i+1) * 1e6)
	}
	for i := range 50 {
		r.Outcomes[Rejected].Latency.Record(int64(i+10) * 1e3)
		r.Outcomes[Error].Latency.Record(5e6)
	}
	for o := range r.Outcomes {
		r.Outcomes[o].Count = r.Outcomes[o].Latency.Count()
		r.Lag.RecordN(2e6, r.Outcomes[o].Count)
	}
	critical := ClassResult{Name: "critical"}
	critical.Outcomes[OK].Latency.RecordN(7e6, 9)
	critical.Outcomes[Timeout].Latency.RecordN(1e9, 1)
	critical.Outcomes[OK].Count, critical.Outcomes[Timeout].Count = 9, 1
	r.Classes = []ClassResult{{Name: "batch"}, critical}
	return r
}

func TestExpectationsAreMeasured(t *testing.T) {
	r := sample()
	for text, want := range map[string]struct {
		ok       bool
		measured string
	}{
		"p50<51ms":            {true, "49.9"},
		"p50<49ms":            {false, "49.9"},
		"p99<200ms":           {true, "98.8"},
		"p99.9 > 99ms":        {true, "100ms"},
		"max<=100ms":          {true, "100ms"},
		"max<100ms":           {false, "100ms"},
		"min>=1ms":            {true, "1ms"},
		"min>1ms":             {false, "1ms"},
		"mean<=50.5ms":        {true, "50.5ms"},
		" ok.p90 < 95ms ":     {true, "89.9"},
		"rejected.p99<1ms":    {true, "59"},
		"rejected.p99.9<10us": {false, "59"},
		"error.max<=5ms":      {true, "5ms"},
		"timeout.p99<1h":      {false, "no timeout answers"},
		"goodput>=10":         {true, "10.0/s"},
		"goodput>10":          {false, "10.0/s"},
		"ok>=50%":             {true, "50.00%"},
		"rejected<25%":        {false, "25.00%"},
		"error<=25.0%":        {true, "25.00%"},
		"timeout<=0%":         {true, "0.00%"},
		"lag.p99<=2ms":        {true, "2ms"},
		"lag.max<1ms":         {false, "2ms"},
		"critical:p99<=7ms":   {true, "7ms"},
		"critical:timeout<5%": {false, "10.00%"},
		"critical: goodput>1": {false, "0.9/s"},
		"batch:goodput<1":     {true, "0.0/s"},
		"batch:p99<1h":        {false, "no ok answers"},
		"batch:error<=1%":     {false, "no answers"},
		"none:goodput>=0":     {false, "no class none"},
	} {
		e, err := ParseExpectation(text)
		if err != nil {
			t.Error(err)
			continue
		}
		if ok, measured := e.Check(r); ok != want.ok || !strings.HasPrefix(measured, want.measured) {
			t.Errorf("%s: %v, measured %s, want %v, %s", e, ok, measured, want.ok, want.measured)
		}
	}
}

func TestNothingMeasuredKeepsNoLatencyOrShare(t *testing.T) {
	for _, text := range []string{"p99<1h", "p99>=0s", "rejected.max<1h", "error<1%", "goodput>0", "lag.p99<1h"} {
		e := must(ParseExpectation(text))(t)
		if ok, measured := e.Check(&Result{}); ok || measured == "" {
			t.Errorf("%s: kept by an empty result, measured %q", text, measured)
		}
	}
}

func TestABadExpectationSaysWhatIsAllowed(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "want <, <=, > or >=",
		"p99":                 "want <, <=, > or >=",
		"p98<200ms":           "want p50, p90",
		"rejected.goodput<5":  "want p50, p90",
		"p99<200":             "want a time",
		"p99<-1ms":            "want a time",
		"goodput>inf":         "want answers per second",
		"goodput>nan":         "want answers per second",
		"error<1":             "want a percentage",
		"error<101%":          "want a percentage",
		"error<NaN%":          "want a percentage",
		"rejected.p99<5%":     "want a time",
		"lag<2ms":             "want p50, p90",
		":p99<2ms":            "no class before the colon",
		"critical:<2ms":       "want p50, p90",
		"critical:lag.p99<1s": "not known by class",
	} {
		if _, err := ParseExpectation(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", text, err, want)
		}
	}
}

func FuzzParseExpectation(f *testing.F) {
	for _, s := range []string{"p99<200ms", " rejected.p99.9 >= 1.5s ", "goodput>=1e3", "error<1%", "p99", "ok<%", "timeout.mean>0", "lag.p99<1ms", "a:b:error<1%"} {
		f.Add(s)
	}
	results := []*Result{{}, sample()}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := ParseExpectation(s)
		if err != nil {
			if e != (Expectation{}) || strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("%q: %+v beside the error %q", s, e, err)
			}
			return
		}
		again, err := ParseExpectation(e.String())
		if err != nil || again != e {
			t.Errorf("%q is read as %+v, and again as %+v, %v", s, e, again, err)
		}
		for _, r := range results {
			if _, measured := e.Check(r); measured == "" {
				t.Errorf("%q measures nothing", s)
			}
		}
	})
}
