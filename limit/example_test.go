package limit_test

import (
	"fmt"
	"time"

	"github.com/spillway-go/spillway/limit"
)

// The owner reports starts and ends of work to a law, and the law sets the limit. A law has no
// clock: the times come with the events.
func Example() {
	law := limit.NewAdaptive()
	var log []limit.Decision
	now := time.Duration(0)
	for seq := uint64(1); seq <= 200; { // each round fills the limit with work of 10 ms
		n := law.Limit()
		for i := range n {
			law.Admit(now, limit.Load{InFlight: i + 1, Queued: 1})
		}
		now += 10 * time.Millisecond
		for i := range n {
			s := limit.Sample{Seq: seq, Start: now - 10*time.Millisecond, End: now, Outcome: limit.Success}
			before := law.Limit()
			law.Observe(s, limit.Load{InFlight: n - i - 1, Queued: 1})
			if after := law.Limit(); after != before {
				log = append(log, limit.Decision{At: now, From: before, To: after, Why: law.(limit.Reporter).Why()})
			}
			seq++
		}
	}
	first := log[0]
	fmt.Println(first.From, "to", first.To, "because", first.Why)
	// Output: 32 to 9 because start: with less waiting
}
