package limiter

import (
	"fmt"
	"testing"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// An admission and its end in families of one key, of a thousand and of a hundred thousand, in turns, and as a multiple
// of the cost with one key. With many keys the cost is that of memory outside of the caches, and of
// a window that passes between two requests of a key.
//
//	go test ./limiter -run '^$' -bench KeyedOfManyKeys -benchtime 300x
func BenchmarkKeyedOfManyKeys(b *testing.B) {
	for _, law := range []string{"fixed", "adaptive"} {
		b.Run(law, func(b *testing.B) {
			var each []func()
			sizes := []int{1, 1000, 100_000}
			for _, n := range sizes {
				k, err := NewKeyed(KeyedConfig{MaxKeys: n, New: func(string) (cfg Config) {
					if law == "fixed" {
						cfg.Law = limit.NewFixed(8)
					}
					return cfg
				}})
				if err != nil {
					b.Fatal(err)
				}
				keys := make([]string, n)
				for i := range keys {
					keys[i] = fmt.Sprint("tenant-", i)
					_ = k.Do(b.Context(), keys[i], nothing)
				}
				i := 0
				each = append(each, func() {
					i = (i + 7919) % n
					p, err := k.Acquire(b.Context(), keys[i])
					if err != nil {
						b.Fatal(err)
					}
					p.Done(nil)
				})
			}
			const turn = 1000
			var took [3]time.Duration
			calls := 0
			for b.Loop() {
				calls += turn
				for s, f := range each {
					began := time.Now()
					for range turn {
						f()
					}
					took[s] += time.Since(began)
				}
			}
			for s, n := range sizes {
				b.ReportMetric(float64(took[s].Nanoseconds())/float64(calls), fmt.Sprintf("ns/call-of-%d", n))
				if s > 0 {
					b.ReportMetric(float64(took[s])/float64(took[0]), fmt.Sprintf("ratio-of-%d", n))
				}
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
