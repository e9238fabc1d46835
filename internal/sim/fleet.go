package sim

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Fleet is the replicas behind a balancer, each with its own Backend and Policy. The balancer
// always knows the number of open calls of each replica. In practice, several balancers that know
// only their own calls do slightly worse.
type Fleet struct {
	Replicas int // zero means one
	Zones    int // replicas are assigned to zones in turn; zero means one
	Balancer Balancer

	// Notice is how long the balancer goes on sending calls to a replica that stopped. These calls
	// fail at once.
	Notice time.Duration

	// Drain is how long a replica that restarts may finish its calls, while it gets no new calls.
	// Unfinished calls are lost. Boot is the time from the end of Drain until the replica is back.
	// The next batch of a restart starts then.
	Drain, Boot time.Duration

	// Cold is the speed of a replica that has just come back; zero means 1. The speed rises to 1
	// within Warm. Without Warm, a replica is at full speed at once. SlowStart is how long the
	// balancer takes to raise the replica's share of the calls to a full share.
	Cold            float64
	Warm, SlowStart time.Duration
}

const mostReplicas = 100_000

func (f Fleet) normal() Fleet {
	f.Replicas, f.Zones, f.Cold = max(f.Replicas, 1), max(f.Zones, 1), cmp.Or(f.Cold, 1)
	return f
}

func (f *Fleet) check() error {
	switch {
	case f.Replicas < 0 || f.Replicas > mostReplicas:
		return fmt.Errorf("its Replicas is %d: use 1 to %d (zero means 1)", f.Replicas, mostReplicas)
	case f.Zones < 0 || f.Zones > max(f.Replicas, 1):
		return fmt.Errorf("its Zones is %d: use 1 to the number of replicas (zero means 1)", f.Zones)
	case int(f.Balancer) >= len(balancers):
		return fmt.Errorf("its Balancer is %d: use RoundRobin, LeastLoaded or PowerOfTwo", f.Balancer)
	case min(f.Notice, f.Drain, f.Boot, f.Warm, f.SlowStart) < 0:
		return fmt.Errorf("its Notice is %v, Drain %v, Boot %v, Warm %v and SlowStart %v: none can be negative", f.Notice, f.Drain, f.Boot, f.Warm, f.SlowStart)
	case !(f.Cold >= 0 && f.Cold <= 1):
		return fmt.Errorf("its Cold is %v: use a speed of more than 0 and up to 1 (zero means 1)", f.Cold)
	}
	return nil
}

// check returns what is wrong with change number i.
func (c *Change) check(i int, f Fleet) error {
	actions := 0
	for _, do := range []bool{c.Stop, c.Start, c.Restart > 0} {
		if do {
			actions++
		}
	}
	switch {
	case c.At < 0:
		return fmt.Errorf("one is at %v: times count from the start of the run", c.At)
	case c.Slots < 0 || !(c.Speed >= 0) || math.IsInf(c.Speed, 0):
		return fmt.Errorf("at %v to %d slots and speed %v: neither can be negative or infinite; zero leaves it as it is", c.At, c.Slots, c.Speed)
	case c.Zone < 0 || c.Zone > f.Zones:
		return fmt.Errorf("at %v: its Zone is %d: use 1 to %d, or 0 for all", c.At, c.Zone, f.Zones)
	case c.Count < 0 || c.Restart < 0:
		return fmt.Errorf("at %v: its Count is %d and Restart %d: neither can be negative", c.At, c.Count, c.Restart)
	case actions > 1:
		return fmt.Errorf("at %v: it does %d things to the same replicas: use one of Stop, Start and Restart", c.At, actions)
	case c.Slots == 0 && c.Speed == 0 && actions == 0:
		return fmt.Errorf("number %d, at %v, changes nothing: set Slots or Speed, or one of Stop, Start and Restart", i, c.At)
	}
	return nil
}

// replica is one process of the service.
type replica struct {
	run     *run
	n       int
	policy  admitter
	backend engine
	slots   int // current slots of the backend
	speed   float64
	warmth  float64 // factor of the speed: below 1 after a cold start
	alive   bool
	life    uint32        // incremented at each start and end
	fullAt  time.Duration // time at which the balancer gives it a full share again

	open           int      // calls sent and not answered
	index          int      // index in rotation.in; -1: not in the rotation
	next, previous *replica // neighbours in a list of ranks
}

// begin gives the replica a new policy and backend.
func (rep *replica) begin() (err error) {
	rep.alive = true
	rep.life++
	rep.run.events.disarm(rep.n)
	rep.backend = rep.run.sc.Backend.engine(rep)
	rep.policy, err = rep.run.sc.Policy.build(rep)
	rep.retune()
	return err
}

func (rep *replica) retune() {
	if rep.alive {
		rep.backend.change(rep.slots, rep.speed*rep.warmth)
	}
}

// parallel returns how many calls the backend can serve at full speed now.
func (rep *replica) parallel() int { return rep.run.sc.Backend.parallel(rep.slots) }

// setUp makes the replicas.
func (r *run) setUp() error {
	f := &r.sc.Fleet
	r.events.timers = newTimers(f.Replicas)
	r.rotation = rotation{run: r, kind: f.Balancer, next: -1}
	r.replicas = make([]replica, f.Replicas)
	for i := range r.replicas {
		rep := &r.replicas[i]
		*rep = replica{run: r, n: i, slots: r.sc.Backend.slots, speed: 1, warmth: 1}
		if err := rep.begin(); err != nil {
			return err
		}
		r.rotation.add(rep)
	}
	return nil
}

// send gives a call to a replica. If the balancer has none, or its choice has ended, the call fails
// at once.
func (r *run) send(c *call) {
	rep := r.rotation.pick()
	if rep == nil || !rep.alive {
		r.broken(c)
		return
	}
	c.replica, c.open = rep, true
	r.rotation.open(rep, 1)
	rep.policy.arrive(c)
}

// answered records that the call is no longer open.
func (r *run) answered(c *call) {
	if c.open {
		c.open = false
		r.rotation.open(c.replica, -1)
	}
}
