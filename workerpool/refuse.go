package workerpool

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/refusal"
)

// refusals counts refusals and makes them, without a lock or an allocation.
type refusals struct {
	advised atomic.Pointer[advised]
	_       [128]byte
	shards  [shards]shard
}

// shards keep refused callers from fighting over one counter.
const shards = 32

type shard struct {
	refused [refusal.Reasons]atomic.Uint64 // 128 bytes
}

// advised are the refusals that hold now, for QueueFull and WaitTooLong, each with
// its advice spread over callers.
type advised [spillway.WaitTooLong + 1][spread]*spillway.Rejection

const spread = 32

// advise sets the wait that later refusals advise.
func (r *refusals) advise(wait time.Duration) {
	a := new(advised)
	for reason := spillway.QueueFull; reason <= spillway.WaitTooLong; reason++ {
		for i := range a[reason] {
			a[reason][i] = refusal.Of(reason).Near(wait, uint64(i))
		}
	}
	r.advised.Store(a)
}

// refuse counts a refusal and returns it.
func (r *refusals) refuse(reason spillway.Reason) error {
	var here byte // goroutines differ in where their stacks are
	s := &r.shards[uintptr(unsafe.Pointer(&here))>>12%shards]
	n := s.refused[reason].Add(1)
	if reason <= spillway.WaitTooLong {
		a := r.advised.Load()
		if a == nil {
			panic(notMade)
		}
		return a[reason][n%spread]
	}
	return refusal.Of(reason).Near(0, n)
}

// afterWaiting is a refusal of a submitter that waited, which is counted where it
// left its place.
func afterWaiting(reason spillway.Reason, waited, advice time.Duration) error {
	rej := *refusal.Of(reason).Near(advice, rand.Uint64())
	rej.Waited = waited
	return &rej
}

// count is how many were refused for a reason without having waited.
func (r *refusals) count(reason spillway.Reason) (n uint64) {
	for i := range r.shards {
		n += r.shards[i].refused[reason].Load()
	}
	return n
}
