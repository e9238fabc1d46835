package memory

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/jobqueuetest"
)

func TestItKeepsTheWordsOfAQueue(t *testing.T) {
	jobqueuetest.Run(t, jobqueuetest.Engine{
		Largest:  1 << 10,
		TooLarge: 1<<10 + 1,
		Around:   synctest.Test,
		New: func(t *testing.T, o jobqueuetest.Options) func() jobqueue.Queue {
			first, err := Open(Config{MaxQueued: o.MaxQueued, MaxInFlight: o.MaxInFlight, AckWait: o.AckWait, Dedupe: o.Dedupe,
				Policy: o.Policy, Limiter: o.Limiter, MaxPayload: 1 << 10})
			if err != nil {
				t.Fatal(err)
			}
			return func() jobqueue.Queue { return first.Open() }
		},
	})
}

// A limiter that refuses much advises to come back in a minute, and has room long before
// if the others stop.
func TestTheLimiterIsSoonAskedAgain(t *testing.T) {
	for advised, want := range map[time.Duration]time.Duration{0: 10 * time.Millisecond, time.Second / 2: time.Second / 2, time.Minute: limiterAgain} {
		if got := advice(&spillway.Rejection{RetryAfter: advised}); got != want {
			t.Errorf("advised %s: asked again after %s", advised, got)
		}
	}
}
