package workerpool

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/refusal"
)

// refusals makes and counts refusals, without a lock or an allocation.
type refusals struct {
	advised atomic.Pointer[advised]
	_       [128]byte
	shards  [shards]shard
}

// shards reduces contention of refused callers on the counters.
const shards = 32

type shard struct {
	refused [refusal.Reasons]atomic.Uint64 // 128 bytes
}

// advised holds the current refusals for ReasonQueueFull and ReasonWaitTooLong, each with its advice spread
// over callers.
type advised [spillway.ReasonWaitTooLong + 1][spread]*spillway.Rejection

const spread = 32

// advise sets the wait that later refusals advise.
func (r *refusals) advise(wait time.Duration) {
	a := new(advised)
	for reason := spillway.ReasonQueueFull; reason <= spillway.ReasonWaitTooLong; reason++ {
		for i := range a[reason] {
			a[reason][i] = refusal.Of(reason).Near(wait, uint64(i))
		}
	}
	r.advised.Store(a)
}

// refuse counts a refusal and returns it.
func (r *refusals) refuse(reason spillway.Reason) error {
	var stackByte byte // its address differs between goroutines
	s := &r.shards[uintptr(unsafe.Pointer(&stackByte))>>12%shards]
	n := s.refused[reason].Add(1)
	if reason <= spillway.ReasonWaitTooLong {
		a := r.advised.Load()
		if a == nil {
			panic(notMade)
		}
		return a[reason][n%spread]
	}
	return refusal.Of(reason).Near(0, n)
}

// afterWaiting returns the refusal of a submitter that waited. The queue has already counted the
// refusal when the submitter left.
func afterWaiting(reason spillway.Reason, waited, advice time.Duration) error {
	rej := *refusal.Of(reason).Near(advice, rand.Uint64())
	rej.Waited = waited
	return &rej
}

// count returns how many submissions were refused for reason without a wait.
func (r *refusals) count(reason spillway.Reason) (n uint64) {
	for i := range r.shards {
		n += r.shards[i].refused[reason].Load()
	}
	return n
}
