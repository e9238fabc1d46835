// Package laws is what the owner of a control law, a limiter or a pool, needs beside the law: the
// ownership, the law's description of itself, and a log of its decisions.
package laws

import (
	"fmt"
	"strings"

	"github.com/spillway-go/spillway/limit"
)

// Claim makes the caller the owner of law, for ever, and reports whether law had no owner.
// Limiters and pools claim their law and fail if the law already has an owner: samples from two
// owners mixed in one law describe neither of them. A law without state, such as a fixed one, and
// a law from another package can always be claimed.
func Claim(law limit.Law) bool {
	c, ok := law.(interface{ Claim() bool })
	return !ok || c.Claim()
}

// Constant reports whether law learns nothing and never changes its limit.
func Constant(law limit.Law) bool {
	_, ok := law.(interface{ Constant() })
	return ok
}

// ReporterOf returns law itself if law is a limit.Reporter. Otherwise ReporterOf returns one that
// names law by its type.
func ReporterOf(law limit.Law) limit.Reporter {
	if r, ok := law.(limit.Reporter); ok {
		return r
	}
	return unreported(strings.TrimPrefix(fmt.Sprintf("%T", law), "*"))
}

// unreported is the limit.Reporter of a law that implements none: the name of the law's type.
type unreported string

func (u unreported) Name() string  { return string(u) }
func (u unreported) State() string { return string(u) + " reports no state" }
func (u unreported) Why() string   { return "decided by " + string(u) }
