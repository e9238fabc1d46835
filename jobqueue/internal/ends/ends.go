// Package ends has the errors by which a handler says what becomes of its job. Package jobqueue makes
// them, and package jobqueue/internal/engine reads them.
package ends

import "time"

// Retry makes the job run again after Wait.
type Retry struct {
	Wait time.Duration
	Err  error // nil: none
}

func (e *Retry) Error() string {
	if e.Err == nil {
		return "jobqueue: again after " + e.Wait.String()
	}
	return e.Err.Error()
}

func (e *Retry) Unwrap() error { return e.Err }

// Again makes the job run again after Wait, with no attempt counted.
type Again struct {
	Wait      time.Duration
	Elsewhere bool  // this process cannot do the job
	Err       error // nil: none
}

func (e *Again) Error() string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.Elsewhere:
		return "jobqueue: not in this process"
	}
	return "jobqueue: not yet, again after " + e.Wait.String()
}

func (e *Again) Unwrap() error { return e.Err }

// Dead makes the job a dead letter.
type Dead struct{ Reason string }

func (e *Dead) Error() string { return e.Reason }
