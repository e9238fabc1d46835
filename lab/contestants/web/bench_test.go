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
	for table, names := range map[string][]string{"contest": routes.Contest, "published": routes.Shape} {
		for _, scenario := range routes.Scenarios {
			for _, name := range names {
				b.Run("table="+table+"/scenario="+scenario+"/contestant="+name, func(b *testing.B) { benchmark(b, name, scenario) })
			}
		}
	}
}

func benchmark(b *testing.B, name, scenario string) {
	h, err := starts[name]()
	if err != nil {
		b.Fatal(err)
	}
	first := func() *harness {
		one := newHarness(h, requests[scenario])
		if status, body := one.send(); name != routes.Nothing && status != requests[scenario].Status {
			b.Errorf("%d %s", status, body)
		}
		return one
	}
	b.ReportAllocs()
	if scenario == routes.Parallel {
		b.RunParallel(func(pb *testing.PB) {
			for one := first(); pb.Next(); {
				one.send()
			}
		})
		return
	}
	for one := first(); b.Loop(); {
		one.send()
	}
}
