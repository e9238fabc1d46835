package objectpool_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/spillway-go/spillway/objectpool"
)

type page struct{ body []byte }

func (p *page) clear() {
	clear(p.body[:cap(p.body)])
	p.body = p.body[:0]
}

func newPage(size int) func() *page {
	return func() *page { return &page{make([]byte, 0, size)} }
}

// reusers return a function that gets, writes a little, clears and puts.
var reusers = []struct {
	name string
	of   func(size int) func()
}{
	{"fresh", func(size int) func() {
		return func() { write(newPage(size)()) }
	}},
	{"sync.Pool", func(size int) func() {
		pool := sync.Pool{New: func() any { return newPage(size)() }}
		return func() {
			p := pool.Get().(*page)
			write(p)
			p.clear()
			pool.Put(p)
		}
	}},
	{"channel", func(size int) func() {
		free := make(chan *page, 1000)
		return func() {
			var p *page
			select {
			case p = <-free:
			default:
				p = newPage(size)()
			}
			write(p)
			p.clear()
			select {
			case free <- p:
			default:
			}
		}
	}},
	{"spillway", func(size int) func() {
		pool := objectpool.New(objectpool.Config[page]{New: newPage(size), Clear: (*page).clear})
		return func() {
			p := pool.Get()
			write(p)
			pool.Put(p)
		}
	}},
	{"spillway-buffers", func(size int) func() {
		pool := objectpool.NewBuffers(objectpool.BuffersConfig{})
		return func() {
			b := pool.Get(size)
			b.Extend(1)[0] = 1
			pool.Put(b)
		}
	}},
}

func write(p *page) { p.body = append(p.body, 1) }

// BenchmarkReuse measures get, write a byte, clear, put.
func BenchmarkReuse(b *testing.B) {
	for _, size := range []int{1 << 10, 64 << 10, 500_000} {
		for _, goroutines := range []int{1, runtime.GOMAXPROCS(0), 1000} {
			for _, r := range reusers {
				b.Run(fmt.Sprintf("bytes=%d/goroutines=%d/by=%s", size, goroutines, r.name), func(b *testing.B) {
					use := r.of(size)
					b.ReportAllocs()
					if goroutines == 1 {
						for b.Loop() {
							use()
						}
						return
					}
					b.SetParallelism(goroutines / runtime.GOMAXPROCS(0))
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							use()
						}
					})
				})
			}
		}
	}
}

// BenchmarkDirty measures a buffer of 500 KB with 1 KB written, beside a buffer of 1 KB.
func BenchmarkDirty(b *testing.B) {
	pool := objectpool.NewBuffers(objectpool.BuffersConfig{})
	for _, size := range []int{1 << 10, 500_000} {
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			for b.Loop() {
				x := pool.Get(size)
				x.Extend(1 << 10)
				pool.Put(x)
			}
		})
	}
}
