package reuse

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spillway-go/spillway/objectpool"
)

// The contestants.
const (
	fresh    = "fresh"
	syncPool = "sync.Pool"
	channel  = "channel"
	spillway = "spillway"
	buffers  = "spillway-buffers"
)

var (
	names = []string{fresh, syncPool, channel, spillway, buffers}
	our   = []string{spillway, buffers}
)

func ours(name string) bool { return slices.Contains(our, name) }

// page fills the cache lines that it lies in: whether two pages share one is luck, and
// doubles the time of a cycle.
type page struct {
	body []byte
	_    [128 - 24]byte
}

func (p *page) clear() {
	clear(p.body[:cap(p.body)])
	p.body = p.body[:0]
}

func (p *page) write(n int) {
	p.body = append(p.body, make([]byte, n)...)
	p.body[0] = 1
}

// pool is one way of having pages of one size.
type pool struct {
	made  atomic.Uint64           // by its function that makes objects
	stats func() objectpool.Stats // nil: it has none

	// cycles gets an object, writes n bytes to it and puts it, so many times in a row. While the
	// object is used it calls hold, which may be nil.
	cycles func(times, n int, hold func())
}

// newPool returns an empty pool of that name. Each has a loop of its own, so that the
// cost of an indirect call is not measured.
func newPool(name string, size int) *pool {
	p := new(pool)
	newPage := func() *page {
		p.made.Add(1)
		return &page{body: make([]byte, 0, size)}
	}
	switch name {
	case fresh:
		p.cycles = func(times, n int, hold func()) {
			p.made.Add(uint64(times))
			for range times {
				x := &page{body: make([]byte, 0, size)}
				x.write(n)
				while(hold)
				answer.Store(x)
			}
		}
	case syncPool:
		free := sync.Pool{New: func() any { return newPage() }}
		p.cycles = func(times, n int, hold func()) {
			for range times {
				x := free.Get().(*page)
				x.write(n)
				while(hold)
				x.clear()
				free.Put(x)
			}
		}
	case channel:
		free := make(chan *page, 1000) // as many as users, which code with such a free list has to know
		p.cycles = func(times, n int, hold func()) {
			for range times {
				var x *page
				select {
				case x = <-free:
				default:
					x = newPage()
				}
				x.write(n)
				while(hold)
				x.clear()
				select {
				case free <- x:
				default:
				}
			}
		}
	case spillway:
		pages := objectpool.New(objectpool.Config[page]{New: newPage, Clear: (*page).clear})
		p.stats = pages.Stats
		p.cycles = func(times, n int, hold func()) {
			for range times {
				x := pages.Get()
				x.write(n)
				while(hold)
				pages.Put(x)
			}
		}
	case buffers:
		all := objectpool.NewBuffers(objectpool.BuffersConfig{})
		p.stats = all.Stats
		p.cycles = func(times, n int, hold func()) {
			for range times {
				x := all.Get(size)
				x.Extend(n)[0] = 1
				while(hold)
				all.Put(x)
			}
		}
	}
	return p
}

// while lets a user have an object, if there is one. It is small enough to be inlined.
func while(hold func()) {
	if hold != nil {
		hold()
	}
}

// answer makes fresh objects escape to the heap, like answers.
var answer atomic.Pointer[page]

// objects is how many were made so far.
func (p *pool) objects() uint64 {
	if p.stats != nil && p.made.Load() == 0 { // buffers are made out of sight
		s := p.stats()
		return s.Gets - s.Reused
	}
	return p.made.Load()
}
