package limit

import (
	"fmt"
	"strings"
	"time"
)

// Reporter is implemented by laws that describe their state and decisions for people. Control does
// not depend on it.
type Reporter interface {
	// Name is the law's short name, such as "fixed".
	Name() string
	// State describes in a few words what the law is doing now, with figures.
	State() string
	// Why returns the reason of the last change of the limit. The same reason has the same
	// words, without figures: the owner calls Why after each change and merges steps with the
	// same reason.
	Why() string
}

// ReporterOf returns law itself if it is a Reporter. Otherwise it returns a Reporter that names
// law by its type.
func ReporterOf(law Law) Reporter {
	if r, ok := law.(Reporter); ok {
		return r
	}
	return unreported(strings.TrimPrefix(fmt.Sprintf("%T", law), "*"))
}

// unreported is the Reporter of a law that implements none: the name of the law's type.
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

// Log keeps the last changes of a limit. Consecutive steps in one direction for one reason are
// merged into one change with the time of the last step. Otherwise a few small steps of growth
// would fill the log. The owner of a law keeps one Log. The zero value is empty. A Log is not safe
// for concurrent use.
type Log struct {
	ring [8]Decision
	n    int // changes so far; the latest is ring[(n-1)%8]
}

// Add appends a change, or merges it into the last. It allocates nothing.
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

// All returns the kept changes, at most eight, oldest first.
func (l *Log) All() []Decision {
	var all []Decision
	for i := max(0, l.n-len(l.ring)); i < l.n; i++ {
		all = append(all, l.ring[i%len(l.ring)])
	}
	return all
}
