package fan

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// The contestants as plain benchmarks. Names are made for benchstat:
//
//	go test ./lab/fan -run '^$' -bench Lookup -count 10 | benchstat -col /contestant -

func BenchmarkLookup(b *testing.B) {
	for _, d := range [][2]time.Duration{{}, published[2], published[1]} {
		for _, n := range []int{2, 8, 64} {
			b.Run(fmt.Sprintf("database=%v/cache=%v/n=%d", d[0], d[1], n), func(b *testing.B) {
				for _, name := range append(Names(), InParallel, Borrowed) {
					b.Run("contestant="+name, func(b *testing.B) { benchmark(b, name, newSources(Computing, n, d[0], d[1])) })
				}
			})
		}
	}
}

func benchmark(b *testing.B, name string, s sources) {
	if name == AsPrinted && raceEnabled {
		b.Skip("a data race by design")
	}
	look, err := newLookup(name, s)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	for range warmCalls { // adaptive contestants have adapted
		if _, err := look(ctx, query{}); err != nil {
			b.Fatal(err)
		}
	}
	lost := 0
	b.ReportAllocs()
	for b.Loop() {
		a, err := look(ctx, query{})
		if err != nil {
			b.Fatal(err)
		}
		lost += s.whole() - len(a.Users)
	}
	if lost > 0 {
		b.ReportMetric(float64(lost)/float64(b.N)/float64(len(s.Caches)), "lost/answer")
	}
}

func BenchmarkNested(b *testing.B) {
	for _, name := range []string{Sequential, Corrected, ErrGroup, Conc, Spillway} {
		b.Run("contestant="+name, func(b *testing.B) {
			of, err := grouping(name, 64)
			if err != nil {
				b.Fatal(err)
			}
			t := tree(func(context.Context) (int, error) { return 1, nil })
			for range 3 {
				if t, err = of(16, t); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if n, err := t(b.Context()); err != nil || n != 4096 {
					b.Fatal(n, err)
				}
			}
		})
	}
}
