package limit

import (
	"fmt"
	"strings"
	"time"
)

// Reporter is implemented by laws that say what they do, for people. It is not
// needed to control anything.
type Reporter interface {
	// Name is the law's short name, such as "fixed".
	Name() string
	// State says in a few words what the law is doing now, with its figures.
	State() string
	// Why says why the limit changed last. The same reason has the same words, and
	// no figures: its owner asks after each change, and keeps steps for one reason
	// as one.
	Why() string
}

// ReporterOf returns the law itself, or for one that is no Reporter something
// that names it by its type.
func ReporterOf(law Law) Reporter {
	if r, ok := law.(Reporter); ok {
		return r
	}
	return unreported(strings.TrimPrefix(fmt.Sprintf("%T", law), "*"))
}

// unreported is the type of a law that does not say what it does.
type unreported string

func (u unreported) Name() string  { return string(u) }
func (u unreported) State() string { return string(u) + " reports no state" }
func (u unreported) Why() string   { return "decided by " + string(u) }

// Decision is one change of a limit, for people.
type Decision struct {
	At       time.Duration // since the limiter or pool was made
	From, To int
	Why      string
}

// Log remembers the last changes of a limit. Steps in one direction for one
// reason are one change, at the time of the last of them; or a few small steps of
// growth would be all there is to see. The owner of a law keeps one. The zero
// value is empty; it is not safe for concurrent use.
type Log struct {
	ring [8]Decision
	n    int // changes so far; the latest is ring[(n-1)%8]
}

// Add enters a change. It allocates nothing.
func (l *Log) Add(d Decision) {
	if l.n > 0 {
		last := &l.ring[(l.n-1)%len(l.ring)]
		if last.Why == d.Why && last.To == d.From && (last.To > last.From) == (d.To > d.From) {
			last.At, last.To = d.At, d.To
			return
		}
	}
	l.ring[l.n%len(l.ring)] = d
	l.n++
}

// All returns the changes that are remembered, eight at most, oldest first.
func (l *Log) All() []Decision {
	var all []Decision
	for i := max(0, l.n-len(l.ring)); i < l.n; i++ {
		all = append(all, l.ring[i%len(l.ring)])
	}
	return all
}
