package limit

import "sync/atomic"

// Claim takes the law for its caller, for ever, and reports whether it was free.
// Limiters and pools claim the law they are given and fail if it has an owner: what
// two of them tell one law is no longer about either. A law that keeps nothing,
// such as Fixed, or that comes from elsewhere, is always free.
func Claim(law Law) bool {
	c, ok := law.(interface{ claim() bool })
	return !ok || c.claim()
}

// claimed marks a law that has an owner. It is atomic for the sake of two limiters
// that are made at the same time.
type claimed struct{ taken atomic.Bool }

func (c *claimed) claim() bool { return c.taken.CompareAndSwap(false, true) }
