package limiter

import (
	"context"
	"fmt"
	"testing"
)

func BenchmarkKeyedOfManyKeys(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			k, err := NewKeyed(KeyedConfig{MaxKeys: n})
			if err != nil {
				b.Fatal(err)
			}
			keys := make([]string, n)
			for i := range keys {
				keys[i] = fmt.Sprint("tenant-", i)
				_ = k.Do(b.Context(), keys[i], nothing)
			}
			i := 0
			for b.Loop() {
				i = (i + 7919) % n
				p, err := k.Acquire(context.Background(), keys[i])
				if err != nil {
					b.Fatal(err)
				}
				p.Done(nil)
			}
		})
	}
}
