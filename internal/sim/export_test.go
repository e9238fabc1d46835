package sim

import "time"

// What tests of other packages see beside the API: the events of a run, and any rate.
type (
	Event     = callEvent
	EventKind = callEventKind
)

const (
	Arrived  = callArrived
	Admitted = callAdmitted
	Refused  = callRefused
	Left     = callLeft
	Ended    = callEnded
)

// WithEvents makes a run keep its events.
func (r Record) WithEvents() Record { r.events = true; return r }

// Recorded returns the events of a run.
func Recorded(r Report) []Event { return r.events }

// Varying returns Poisson arrivals whose rate, in calls a second, is a function of time. Higher
// rates than most count as most.
func Varying(most float64, rate func(t time.Duration) float64) Arrivals { return varying{most, rate} }
