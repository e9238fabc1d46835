package route

import "sync"

// once is a sync.Once whose function may panic: then each later Do panics as well. What
// the function was to complete is not complete, and must not be used.
type once struct {
	once sync.Once
	left bool // half done
}

func (o *once) Do(f func()) {
	o.once.Do(func() {
		o.left = true
		f()
		o.left = false
	})
	if o.left {
		panic("route: nothing is served, because a middleware panicked when it was called for the first request")
	}
}
