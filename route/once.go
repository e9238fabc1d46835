package route

import "sync"

// once is a sync.Once whose function may panic. Then each later Do panics as well, because the work
// of the function is incomplete and must not be used.
type once struct {
	once       sync.Once
	incomplete bool // the function has begun and not returned
}

func (o *once) Do(f func()) {
	o.once.Do(func() {
		o.incomplete = true
		f()
		o.incomplete = false
	})
	if o.incomplete {
		panic("route: nothing is served, because a middleware panicked when it was called for the first request")
	}
}
