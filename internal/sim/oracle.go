package sim

import (
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/priority"
	"github.com/spillway-go/spillway/limit"
)

// Oracle is for comparison, not a usable policy: it knows at every instant how many calls the
// backend serves at full speed. It admits that many, by priority, the oldest first within a
// priority. It refuses calls that would not be done in time.
func Oracle() Policy { return oracleOf(false) }

// OracleNewestFirst is Oracle with the newest call first within a priority, which is the better
// order under overload.
func OracleNewestFirst() Policy { return oracleOf(true) }

func oracleOf(newest bool) Policy {
	return Policy{build: func(at *replica) (admitter, error) {
		return &oracle{run: at.run, at: at, newest: newest, need: at.run.sc.mean() * 4 / 3}, nil
	}}
}

type oracle struct {
	run     *run
	at      *replica
	newest  bool
	need    time.Duration
	n       int
	waiting int
	lines   [limit.Classes]line
}

func (o *oracle) arrive(c *call) {
	o.waiting++
	o.lines[priority.Level(c.class.Priority)].push(c)
	o.run.wait(c, never)
	o.dispatch()
}

func (o *oracle) ended(*call, limit.Outcome) { o.n-- }

func (o *oracle) leave(*call) bool { o.waiting--; return true }

func (o *oracle) overdue(*call) bool { return false }

func (o *oracle) dispatch() {
	for o.n < o.at.parallel() {
		c := o.next()
		if c == nil {
			return
		}
		o.waiting--
		if c.deadline-o.run.now <= o.need {
			o.run.refuse(c, spillway.ReasonDeadlineTooClose, 0)
			continue
		}
		o.n++
		o.run.admit(c)
	}
}

func (o *oracle) next() (c *call) {
	for i := range o.lines {
		if o.newest {
			c = o.lines[i].popLast()
		} else {
			c = o.lines[i].pop()
		}
		if c != nil {
			break
		}
	}
	return c
}

func (o *oracle) load() (limit, inFlight, queued int) { return o.at.parallel(), o.n, o.waiting }
