package routes

import "testing"

// BenchmarkRequest measures every contestant in every scenario, with request and
// response writer reused; contestant=nothing is what they cost. For benchstat:
//
//	go test ./lab/routes -run '^$' -bench Request -count 10 | benchstat -col /contestant -
//
// and with GOEXPERIMENT=jsonv2 in front for the other encoding/json.
func BenchmarkRequest(b *testing.B) {
	for _, table := range []string{tableContest, tablePublished, tableFiber} {
		for _, scenario := range append([]string{Untagged}, scenarios...) {
			for _, c := range tables()[table] {
				if !c.does(scenario) || scenario == Untagged && table != tablePublished {
					continue
				}
				b.Run("table="+table+"/scenario="+scenario+"/contestant="+c.name, func(b *testing.B) { benchmark(b, c, scenario) })
			}
		}
	}
}

func benchmark(b *testing.B, c rival, scenario string) {
	h, err := c.start()
	if err != nil {
		b.Fatal(err)
	}
	check := func(one harness) {
		if c.name != Nothing && one.status() != requests[scenario].Status {
			b.Errorf("%d %s", one.status(), one.body())
		}
	}
	b.ReportAllocs()
	if scenario == Parallel {
		b.RunParallel(func(pb *testing.PB) {
			one := newHarness(h, requests[scenario], false)
			one.send() // there may be fewer requests than goroutines
			check(one)
			for pb.Next() {
				one.send()
			}
		})
		return
	}
	one := newHarness(h, requests[scenario], false)
	one.send()
	check(one)
	for b.Loop() {
		one.send()
	}
}
