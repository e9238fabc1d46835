package main

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/spillway-go/spillway/lab/fan"
	"github.com/spillway-go/spillway/load/usage"
)

// The contestants as plain benchmarks. Names are made for benchstat, from lab/contestants:
//
//	go test ./fan -run '^$' -bench Lookup -count 10 | benchstat -col /contestant -

func BenchmarkLookup(b *testing.B) {
	for _, t := range []fan.Table{{Load: "nothing"}, fan.Published[2], fan.Published[1]} {
		for _, t.Sources = range []int{2, 8, 64} {
			for _, name := range append(slices.Clone(fan.Names), fan.InParallel) {
				b.Run(fmt.Sprintf("work=%s/n=%d/contestant=%s", t.Load, t.Sources, name), func(b *testing.B) { benchmark(b, name, t) })
			}
		}
	}
}

func BenchmarkNested(b *testing.B) {
	for _, name := range correct[:5] {
		b.Run("contestant="+name, func(b *testing.B) { benchmark(b, name, fan.Table{Sources: 16, Levels: 3, Budget: 64}) })
	}
}

func benchmark(b *testing.B, name string, t fan.Table) {
	if name == fan.AsPrinted && usage.Race {
		b.Skip("a data race by design")
	}
	p, err := newPlayer(b.Context(), name, newSources(fan.Computing, t), t)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	_ = p.ready(0)
	b.ReportAllocs()
	for b.Loop() {
		p.run(ctx, 1)
	}
	if p.missed > 0 {
		b.ReportMetric(float64(p.missed)/float64(p.calls)/float64(t.Sources-1), "lost/answer")
	}
	if err := p.check(); err != nil {
		b.Fatal(err)
	}
}
