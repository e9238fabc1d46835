package overload

import (
	"time"

	"github.com/spillway-go/spillway/lab/usage"
)

// The headers in which a client describes its request.
const (
	TimeoutHeader  = "X-Timeout-Ms" // how long it will wait for the answer
	PriorityHeader = "X-Priority"   // "critical", or absent
	Critical       = "critical"
)

// Job is the input of a server contestant.
type Job struct {
	Contestant string
	Work       Work
	Seed       uint64
	Patients   int
	Database   string        // path of the SQLite file
	Step       time.Duration // of the samples
}

// Served is what a server contestant reports when it is stopped.
type Served struct {
	Usage   usage.Usage
	Peak    int // most queries in the database at one time
	Samples []Sample
	State   string
}

// Sample is one sample of a contestant.
type Sample struct {
	At                      time.Time
	Limit, Running, Waiting int
}
