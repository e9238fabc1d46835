package ladder

import (
	"math/bits"
	"strings"
)

// Rungs is a set of savings. The small server has them switched on or off, each
// independent of the others.
type Rungs uint8

// The savings, each with what replaces it when it is off.
const (
	State     Rungs = 1 << iota // request and response are reused; off: allocated for each request
	Bytes                       // the handler reads bytes; off: *http.Request, http.Header, url.URL
	Parser                      // one pass over the buffer; off: http.ReadRequest
	Workers                     // reused goroutines serve connections; off: a goroutine for each
	Unwatched                   // nothing beside the handler; off: background read, deadline resets, a context to cancel
	OneBuffer                   // the answer is written once, the date cached; off: two buffers and a body writer, sorted, date formatted

	AllRungs = OneBuffer<<1 - 1 // every saving
)

// Ordered is all savings in the order in which the source names them, then the two
// that it does not name.
var Ordered = []Rungs{State, Bytes, Parser, Workers, Unwatched, OneBuffer}

var rungNames = map[Rungs]string{
	State: "pooled state", Bytes: "byte API", Parser: "own parser", Workers: "connection workers",
	Unwatched: "no background read", OneBuffer: "one write buffer",
}

// String names the savings that are on.
func (r Rungs) String() string {
	var names []string
	for _, one := range Ordered {
		if r.Has(one) {
			names = append(names, rungNames[one])
		}
	}
	return strings.Join(names, ", ")
}

// key names a saving in the figures of a run.
func (r Rungs) key() string { return strings.ReplaceAll(r.String(), " ", "_") + "_us" }

// count is how many savings are on.
func (r Rungs) count() int { return bits.OnesCount8(uint8(r)) }

// Has reports whether these savings are on.
func (r Rungs) Has(these Rungs) bool { return r&these == these }
