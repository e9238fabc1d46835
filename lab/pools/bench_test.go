package pools

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/spillway-go/spillway/lab/burn"
)

// The contestants as plain benchmarks. Names are made for benchstat:
//
//	go test ./lab/pools -run '^$' -bench Submit -count 10 | benchstat -col /pool -

const benchBuffer = 1024

// each runs a benchmark for every contestant, number of producers and number
// of workers. start makes a contestant ready to be driven.
func each(b *testing.B, names []string, producers, workers []int, start func(bout, entry) (rig, error)) {
	for _, n := range producers {
		for _, w := range workers {
			for _, name := range names {
				b.Run("producers="+strconv.Itoa(n)+"/workers="+strconv.Itoa(w)+"/pool="+name, func(b *testing.B) {
					s, err := start(bout{Producers: n, Buffer: benchBuffer}, entry{Contestant: name, Workers: w})
					if err != nil {
						b.Fatal(err)
					}
					defer s.close()
					s.drive(2*n, nil) // workers and waiting goroutines exist now
					b.ReportAllocs()
					s.drive(b.N, b.ResetTimer) // not b.Loop: every producer needs its share
					b.StopTimer()
					if err := s.check(); err != nil {
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
			each(b, submitters(), []int{1, runtime.GOMAXPROCS(0), 64, 1000}, []int{2, 100, 1000},
				func(bo bout, e entry) (rig, error) { return bo.startSubmitting(e, work) })
		})
	}
}

func BenchmarkRefuse(b *testing.B) {
	each(b, refusers(), []int{1, 1000}, []int{2}, bout.startRefusing)
}

func BenchmarkCall(b *testing.B) {
	each(b, callers(), []int{1, 1000}, []int{2, 100},
		func(bo bout, e entry) (rig, error) { return bo.startCalling(e, func() {}) })
}
