package limit

import "sync/atomic"

// claimed marks a law that has an owner. The mark is atomic because two limiters may be created
// concurrently.
type claimed struct{ taken atomic.Bool }

// Claim makes the caller the owner, for ever, and reports whether the law had none. The caller is
// package laws.
func (c *claimed) Claim() bool { return c.taken.CompareAndSwap(false, true) }
