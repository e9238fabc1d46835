package clusterlimit

import (
	"testing"
	"time"
)

func TestAllowAllocatesNothing(t *testing.T) {
	m := join(t, Config{URL: engine(t), Rate: 10, Lease: time.Hour}) // so long that no renewal, which allocates, is counted
	var err error
	if n := testing.AllocsPerRun(1000, func() { err = m.Allow(1) }); n != 0 {
		t.Errorf("%v allocations, %v", n, err)
	}
}

func BenchmarkAllow(b *testing.B) {
	m := join(b, Config{URL: engine(b), Rate: 1e9})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_ = m.Allow(1)
		}
	})
}
