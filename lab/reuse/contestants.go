package reuse

import (
	"sync"
	"sync/atomic"

	"github.com/spillway-go/spillway/objectpool"
)

// The contestants.
const (
	Fresh    = "fresh"
	SyncPool = "sync.Pool"
	Channel  = "channel"
	Spillway = "spillway"
	Buffers  = "spillway-buffers"
)

// Names lists the contestants.
func Names() []string { return []string{Fresh, SyncPool, Channel, Spillway, Buffers} }

// channelRoom is how many objects the channel holds: the number of users, which code
// with such a free list has to know.
const channelRoom = 1000

// dirty is how many bytes every user writes.
const dirty = 1 << 10

type page struct{ body []byte }

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
	made  atomic.Uint64 // counted in New; Buffers have their own count
	stats func() objectpool.Stats

	// cycles gets, writes, clears and puts n times in a row.
	cycles func(n int)

	// use gets an object, writes n bytes to it, and puts it after hold.
	use func(n int, hold func())
}

// newPool returns an empty pool of that name. Each has a loop of its own, so that the
// cost of an indirect call is not measured.
func newPool(name string, size int) *pool {
	p := new(pool)
	fresh := func() *page {
		p.made.Add(1)
		return &page{make([]byte, 0, size)}
	}
	n := min(dirty, size)
	switch name {
	case Fresh:
		p.cycles = func(times int) {
			for range times {
				x := &page{make([]byte, 0, size)}
				x.write(n)
				kept.Store(x)
			}
		}
		p.use = func(n int, hold func()) {
			x := fresh()
			x.write(n)
			hold()
			kept.Store(x)
		}
	case SyncPool:
		var free sync.Pool
		free.New = func() any { return fresh() }
		p.cycles = func(times int) {
			for range times {
				x := free.Get().(*page)
				x.write(n)
				x.clear()
				free.Put(x)
			}
		}
		p.use = func(n int, hold func()) {
			x := free.Get().(*page)
			x.write(n)
			hold()
			x.clear()
			free.Put(x)
		}
	case Channel:
		free := make(chan *page, channelRoom)
		get := func() *page {
			select {
			case x := <-free:
				return x
			default:
				return fresh()
			}
		}
		put := func(x *page) {
			x.clear()
			select {
			case free <- x:
			default:
			}
		}
		p.cycles = func(times int) {
			for range times {
				x := get()
				x.write(n)
				put(x)
			}
		}
		p.use = func(n int, hold func()) {
			x := get()
			x.write(n)
			hold()
			put(x)
		}
	case Spillway:
		pages := objectpool.New(objectpool.Config[page]{New: fresh, Clear: (*page).clear})
		p.stats = pages.Stats
		p.cycles = func(times int) {
			for range times {
				x := pages.Get()
				x.write(n)
				pages.Put(x)
			}
		}
		p.use = func(n int, hold func()) {
			x := pages.Get()
			x.write(n)
			hold()
			pages.Put(x)
		}
	case Buffers:
		buffers := objectpool.NewBuffers(objectpool.BuffersConfig{})
		p.stats = buffers.Stats
		p.cycles = func(times int) {
			for range times {
				x := buffers.Get(size)
				x.Extend(n)[0] = 1
				buffers.Put(x)
			}
		}
		p.use = func(n int, hold func()) {
			x := buffers.Get(size)
			x.Extend(n)[0] = 1
			hold()
			buffers.Put(x)
		}
	}
	return p
}

// kept makes fresh objects escape to the heap, like answers.
var kept atomic.Pointer[page]

// objects is how many were made so far.
func (p *pool) objects() uint64 {
	if p.stats != nil && p.made.Load() == 0 {
		s := p.stats()
		return s.Gets - s.Reused
	}
	return p.made.Load()
}
