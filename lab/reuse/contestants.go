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

	// cycles gets, writes, clears and puts n times in a row.
	cycles func(n int)

	// use gets an object, writes n bytes to it, and puts it after hold.
	use func(n int, hold func())
}

// newPool returns an empty pool of that name. Each has a loop of its own, so that the
// cost of an indirect call is not measured.
func newPool(name string, size int) *pool {
	p := new(pool)
	n := min(dirty, size)
	newPage := func() *page {
		p.made.Add(1)
		return &page{body: make([]byte, 0, size)}
	}
	switch name {
	case fresh:
		p.use = using(newPage, (*page).write, answer.Store)
		p.cycles = func(times int) {
			for range times {
				x := &page{body: make([]byte, 0, size)}
				x.write(n)
				answer.Store(x)
			}
		}
	case syncPool:
		free := sync.Pool{New: func() any { return newPage() }}
		p.cycles = func(times int) {
			for range times {
				x := free.Get().(*page)
				x.write(n)
				x.clear()
				free.Put(x)
			}
		}
		p.use = using(func() *page { return free.Get().(*page) }, (*page).write, func(x *page) {
			x.clear()
			free.Put(x)
		})
	case channel:
		free := make(chan *page, 1000) // as many as users, which code with such a free list has to know
		get := func() *page {
			select {
			case x := <-free:
				return x
			default:
				return newPage()
			}
		}
		put := func(x *page) {
			x.clear()
			select {
			case free <- x:
			default:
			}
		}
		p.use = using(get, (*page).write, put)
		p.cycles = func(times int) {
			for range times {
				x := get()
				x.write(n)
				put(x)
			}
		}
	case spillway:
		pages := objectpool.New(objectpool.Config[page]{New: newPage, Clear: (*page).clear})
		p.stats, p.use = pages.Stats, using(pages.Get, (*page).write, pages.Put)
		p.cycles = func(times int) {
			for range times {
				x := pages.Get()
				x.write(n)
				pages.Put(x)
			}
		}
	case buffers:
		all := objectpool.NewBuffers(objectpool.BuffersConfig{})
		write := func(x *objectpool.Buffer, n int) { x.Extend(n)[0] = 1 }
		p.stats, p.use = all.Stats, using(func() *objectpool.Buffer { return all.Get(size) }, write, all.Put)
		p.cycles = func(times int) {
			for range times {
				x := all.Get(size)
				write(x, n)
				all.Put(x)
			}
		}
	}
	return p
}

// using makes the use of one object from its parts, where their calls cost nothing that
// matters.
func using[T any](get func() *T, write func(*T, int), put func(*T)) func(n int, hold func()) {
	return func(n int, hold func()) {
		x := get()
		write(x, n)
		hold()
		put(x)
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
