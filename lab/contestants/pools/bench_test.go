package main

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/pools"
)

// The contestants as plain benchmarks. Names are made for benchstat:
//
//	go test ./lab/contestants/pools -run '^$' -bench Submit -count 10 | benchstat -col /pool -

// each runs a benchmark for every contestant, number of producers and number
// of workers. open makes a contestant ready to be driven.
func each(b *testing.B, names []string, producers, workers []int, work func(), open opener) {
	for _, n := range producers {
		for _, w := range workers {
			for _, name := range names {
				b.Run("producers="+strconv.Itoa(n)+"/workers="+strconv.Itoa(w)+"/pool="+name, func(b *testing.B) {
					s, err := open(pools.Bout{Contestant: name, Producers: n, Workers: w}, work)
					if err != nil {
						b.Fatal(err)
					}
					s.gather(2 * n)() // workers and waiting goroutines exist now
					b.ReportAllocs()
					drive := s.gather(b.N) // not b.Loop: every producer needs its share
					b.ResetTimer()
					drive()
					b.StopTimer()
					if err := s.end(); err != nil {
						b.Error(err)
					}
				})
			}
		}
	}
}

func BenchmarkSubmit(b *testing.B) {
	for _, d := range []time.Duration{0, time.Microsecond, 20 * time.Microsecond} {
		work := burn.For(d)
		b.Run("work="+d.String(), func(b *testing.B) {
			each(b, pools.Submitters, []int{1, runtime.GOMAXPROCS(0), 64, 1000}, []int{2, 100, 1000}, work, openSubmitting)
		})
	}
}

func BenchmarkRefuse(b *testing.B) {
	each(b, pools.Refusers, []int{1, 1000}, []int{2}, nil, openRefusing)
}

func BenchmarkCall(b *testing.B) {
	each(b, pools.Callers, []int{1, 1000}, []int{2, 100}, func() {}, openCalling)
}
