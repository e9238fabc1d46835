package limit

import "sync/atomic"

// Claim makes the caller the owner of law, for ever, and reports whether law had no owner.
// Limiters and pools claim their law and fail if the law already has an owner: samples from two
// owners mixed in one law describe neither of them. A law without state, such as Fixed, and
// a law from another package can always be claimed.
func Claim(law Law) bool {
	c, ok := law.(interface{ claim() bool })
	return !ok || c.claim()
}

// claimed marks a law that has an owner. It is atomic because two limiters may be created
// concurrently.
type claimed struct{ taken atomic.Bool }

func (c *claimed) claim() bool { return c.taken.CompareAndSwap(false, true) }
