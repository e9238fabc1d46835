package agents

import "time"

// roster knows which agents of a run are alive.
type roster struct {
	silence time.Duration // after which one is lost
	members []member
}

type member struct {
	heard time.Duration // when, by the coordinator's clock
	state state
}

type state uint8

const (
	running   state = iota
	delivered       // its result is here
	lost            // no result will come
)

func newRoster(agents int, silence, now time.Duration) *roster {
	r := &roster{silence: silence, members: make([]member, agents)}
	for i := range r.members {
		r.members[i].heard = now
	}
	return r
}

// hear notes that agent i said something. Who was given up is not heard any more.
func (r *roster) hear(i int, now time.Duration) bool {
	if i < 0 || i >= len(r.members) || r.members[i].state == lost {
		return false
	}
	r.members[i].heard = now
	return true
}

func (r *roster) set(i int, s state) { r.members[i].state = s }

// losses returns the agents that have been silent for too long, and gives them up.
func (r *roster) losses(now time.Duration) (gone []int) {
	for i := range r.members {
		if m := &r.members[i]; m.state == running && now-m.heard >= r.silence {
			m.state = lost
			gone = append(gone, i)
		}
	}
	return gone
}

// running returns those from whom a result is still expected.
func (r *roster) running() (left []int) {
	for i := range r.members {
		if r.members[i].state == running {
			left = append(left, i)
		}
	}
	return left
}
