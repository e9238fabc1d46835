package fanout

import (
	"context"
	"testing"
)

// BenchmarkDo measures a call of branches that do nothing. The lab compares Fanout with others
// (lab/contestants/fan).
func BenchmarkDo(b *testing.B) {
	for _, mode := range []Mode{Sequential, Parallel, Auto} {
		b.Run(mode.String(), func(b *testing.B) {
			f := same(b, Config{Mode: mode}, 8, func(context.Context, int) (uint64, error) { return 1, nil })
			b.ReportAllocs()
			for b.Loop() {
				_, _ = f.Do(b.Context(), 1)
			}
		})
	}
}
