//go:build gc && !race && !go1.28

package objectpool

import _ "unsafe" // for go:linkname

// sync.Pool is fast because a goroutine pinned to its processor needs no atomic operation: no other
// goroutine can run there. One atomic operation costs half as much as a get and put of a sync.Pool.
// The runtime keeps procPin and procUnpin for such use by other packages (go.dev/issue/67401), but
// promises them for no future version. Where they are not known to exist, pin_portable.go replaces
// pin.go.

//go:linkname procPin runtime.procPin
func procPin() int

//go:linkname procUnpin runtime.procUnpin
func procUnpin()

// claim needs no state.
//
//lint:ignore U1000 it is a lock in pin_portable.go
type claim struct{}

// enter gives the caller exclusive use of a local, until leave, and returns the index of the local.
// If the index is not less than the number of locals, the caller's processor has no local. Nothing
// may block between enter and leave.
func (t *tier[T]) enter() int { return procPin() }
func (t *tier[T]) leave(int)  { procUnpin() }

// inspect runs f, which reads words of a local while its owner may be writing them. f sees the writes of
// all calls that have returned, and may see later writes.
func (t *tier[T]) inspect(_ int, f func()) { f() }
