// Package agents sends one load from several processes, on one machine or many.
//
// An agent ([Serve]) waits until somebody calls. [Coordinate] calls, gives every agent
// its share of the load, measures how far their clocks are apart, and starts all of them at one
// instant. The agents then report what they measure once an interval, and a result at
// the end; the coordinator adds these up to what one process would have measured.
//
// A run without one of its agents is not the load that was asked for. Both sides
// send heartbeats: the coordinator notices within two seconds that an agent is lost,
// stops the others and says that the run is invalid; agents stop when the coordinator is lost.
//
// The package knows nothing of networks: a [Bus] carries the messages.
package agents

import "context"

// Bus carries messages between processes by subject.
type Bus interface {
	// Publish sends data to all subscribers. It does not wait for them, and may be lost.
	Publish(subject string, data []byte) error

	// Request sends data to a subscriber and waits for its answer.
	Request(ctx context.Context, subject string, data []byte) ([]byte, error)

	// Subscribe calls f with each message, one after the other. reply answers a request, and is
	// to be called once, from any goroutine; for other messages it does nothing.
	Subscribe(subject string, f func(data []byte, reply func([]byte))) (unsubscribe func(), err error)
}

const (
	callSubject = "spillway.load.call" // to all agents
	base        = "spillway.load."
)

func agentSubject(id string) string { return base + "agent." + id } // to one agent
func runSubject(run string) string  { return base + "run." + run }  // to the coordinator
func allSubject(run string) string  { return base + "all." + run }  // to the agents of a run
