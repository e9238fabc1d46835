package main

import (
	"testing"

	"github.com/spillway-go/spillway/lab/routes"
)

// BenchmarkRequest measures every contestant in every scenario, with request and
// response writer reused; contestant=nothing is what they cost. For benchstat:
//
//	go test ./lab/contestants/web -run '^$' -bench Request -count 10 | benchstat -col /contestant -
//
// and with GOEXPERIMENT=jsonv2 in front for the other encoding/json.
func BenchmarkRequest(b *testing.B) {
	for _, table := range []string{routes.TableContest, routes.TablePublished, routes.TableFiber} {
		for _, scenario := range append([]string{routes.Untagged}, routes.Scenarios...) {
			for _, name := range routes.Tables[table] {
				if !routes.Does(name, scenario) || scenario == routes.Untagged && table != routes.TablePublished {
					continue
				}
				b.Run("table="+table+"/scenario="+scenario+"/contestant="+name, func(b *testing.B) { benchmark(b, table, name, scenario) })
			}
		}
	}
}

func benchmark(b *testing.B, table, name, scenario string) {
	h, err := start(table, name)
	if err != nil {
		b.Fatal(err)
	}
	check := func(one harness) {
		if name != routes.Nothing && one.status() != requests[scenario].Status {
			b.Errorf("%d %s", one.status(), one.body())
		}
	}
	b.ReportAllocs()
	if scenario == routes.Parallel {
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
