package objectpool

import "testing"

// BenchmarkReuse measures get, write, clear and put. The lab compares the pools with others
// (lab/reuse).
func BenchmarkReuse(b *testing.B) {
	p, buffers := records(false), NewBuffers(BuffersConfig{})
	b.Run("object", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				r := p.Get()
				r.id = 1
				p.Put(r)
			}
		})
	})
	b.Run("buffer", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				x := buffers.Get(500_000) // of which little is cleared
				x.Extend(1 << 10)
				buffers.Put(x)
			}
		})
	})
}
