package budget

import "sync/atomic"

// most replicas that a referee can tell apart.
const seats = 64

// Referee counts, in memory that all processes share, what truly runs.
type Referee struct {
	running atomic.Int64
	_       [56]byte // each on a cache line of its own
	most    atomic.Int64
	_       [56]byte
	lease   atomic.Int64 // the largest that any replica had since the warm-up
	_       [56]byte
	began   atomic.Bool
	_       [60]byte
	of      [seats]struct {
		admitted atomic.Uint64
		_        [56]byte
	}
}

// Began says that all replicas are there, and clients may ask.
func (r *Referee) Began() bool { return r.began.Load() }

// Begin counts work of a replica that begins, and Finish that it ends.
func (r *Referee) Begin(replica int) {
	r.of[replica].admitted.Add(1)
	raise(&r.most, r.running.Add(1))
}

// Finish is said by the replica that said Begin.
func (r *Referee) Finish() { r.running.Add(-1) }

// Lease notes how much a replica may run.
func (r *Referee) Lease(n int) { raise(&r.lease, int64(n)) }

func raise(most *atomic.Int64, n int64) {
	for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
	}
}

// admissions is how many there were.
func (r *Referee) admissions() (n uint64) {
	for i := range r.of {
		n += r.of[i].admitted.Load()
	}
	return n
}
