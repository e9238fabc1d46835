package limit

import "time"

// Reporter is implemented by laws that describe their state and decisions for people. Control does
// not depend on it.
type Reporter interface {
	// Name is the law's short name, such as "fixed".
	Name() string
	// State describes in a few words what the law is doing now, with figures.
	State() string
	// Why returns the reason of the last change of the limit. The same reason has the same
	// words, without figures: the owner calls Why after each change and merges steps with the
	// same reason.
	Why() string
}

// Decision is one change of a limit, for people.
type Decision struct {
	At       time.Duration // since the limiter or pool was made
	From, To int
	Why      string
}
