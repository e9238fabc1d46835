package laws

import "github.com/spillway-go/spillway/limit"

// Log keeps the last changes of a limit. Consecutive steps in one direction for one reason are
// merged into one change with the time of the last step. Otherwise a few small steps of growth
// would fill the log. The owner of a law keeps one Log. The zero value is empty. A Log is not safe
// for concurrent use.
type Log struct {
	ring [8]limit.Decision
	n    int // changes so far; the latest is ring[(n-1)%8]
}

// Add appends a change, or merges it into the last. It allocates nothing.
func (l *Log) Add(d limit.Decision) {
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
func (l *Log) All() []limit.Decision {
	var all []limit.Decision
	for i := max(0, l.n-len(l.ring)); i < l.n; i++ {
		all = append(all, l.ring[i%len(l.ring)])
	}
	return all
}
