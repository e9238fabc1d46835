package sim

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// Fleet is the replicas behind a balancer, each with a Backend and a Policy of its own.
// The balancer is one that knows how many open calls each has, as if it had asked at
// once; several balancers that each know their own calls do a little worse.
type Fleet struct {
	Replicas int // zero means one
	Zones    int // that they are spread over in turn; zero means one
	Balancer Balancer

	// Notice is how long the balancer goes on sending to a replica that stopped. Those
	// calls fail at once.
	Notice time.Duration

	// A replica that is restarted gets no more calls and has Drain for those it has; what
	// is left then is lost. After Boot it is back. The next batch follows then.
	Drain, Boot time.Duration

	// A replica that has come back begins at the speed Cold, which rises to 1 within Warm.
	// Zero means 1. The balancer takes SlowStart until it gives it a full share.
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

// check is told the number of the change.
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
	slots   int // of the backend now
	speed   float64
	warmth  float64 // times the speed
	alive   bool
	life    uint32        // counts its starts and ends
	fullAt  time.Duration // when it gets a full share again

	open           int      // calls that the balancer waits for
	index          int      // in the rotation; -1: it is not in it
	next, previous *replica // with equally many open calls
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

// parallel is how many calls the backend now serves at full speed.
func (rep *replica) parallel() int { return rep.run.sc.Backend.parallel(rep.slots) }

// setUp makes the replicas.
func (r *run) setUp() error {
	f := &r.sc.Fleet
	r.events.timers = newTimers(f.Replicas)
	r.rotation = rotation{run: r, kind: f.Balancer, turn: -1}
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

// send gives a call to a replica. Where there is none that answers, it fails at once.
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

// answered tells the balancer that it waits for the call no more.
func (r *run) answered(c *call) {
	if c.open {
		c.open = false
		r.rotation.open(c.replica, -1)
	}
}
