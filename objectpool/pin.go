//go:build gc && !race && !go1.28

package objectpool

import _ "unsafe" // for go:linkname

// sync.Pool is fast because nothing disturbs a goroutine that is pinned to its
// processor, so that it needs no atomic operation. One alone costs as much as
// half of a sync.Pool's get and put. The runtime keeps these two for such use
// by others (go.dev/issue/67401), but it promises them for no future version:
// where they are not known to be there, pin_portable.go stands in.

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// claim needs no state.
//
//lint:ignore U1000 it is a lock in pin_portable.go
type claim struct{}

// enter makes the caller the only one at a local, until leave, and returns its
// index, or more if there are not as many. In between nothing may block.
func (t *tier[T]) enter() int { return procPin() }
func (t *tier[T]) leave(int)  { procUnpin() }

// look runs f, which reads words of a local while its owner may be writing
// them: each is as old as the last call that has returned, or newer.
func (t *tier[T]) look(_ int, f func()) { f() }
