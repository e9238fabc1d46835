package audit

import (
	"context"
	"time"
)

// Outcome is what became of a request.
type Outcome string

// The outcomes.
const (
	Granted Outcome = "granted" // the data was sent, or that it does not exist
	Denied  Outcome = "denied"  // without proof of who asks, or not allowed
	Shed    Outcome = "shed"    // refused for overload
	Failed  Outcome = "failed"  // allowed, and not answered: bad input, an error, a timeout
	Gap     Outcome = "gap"     // no access: the storage failed, and Count events before this one are not on record
	Unclean Outcome = "unclean" // no access: a process that began at RequestID was killed before it could say what it has not recorded
)

// Event is one access.
type Event struct {
	Time      time.Time
	RequestID string
	Subject   string // empty where nobody proved who it is
	Role      string
	Action    string
	Resource  string
	Patients  []string // whose data, at most MaxPatients; empty for a search before it found anybody
	More      int64    // how many patients there were beside those
	Outcome   Outcome
	Status    int    // of HTTP
	Route     string // the pattern, such as GET /api/v1/patients/{id}
	Unread    bool   // refused before its body was read: whom it was about is not known
	Count     int64  // of a Gap, or of a sum of Strangers: how many events it stands for
	Source    string // the address of a caller who did not prove who it is
}

// Log takes events. It is safe for concurrent use.
type Log interface {
	// Record returns when the event is where a crash cannot take it away, or with the
	// reason why it is not: after seconds at most, also when ctx never ends.
	Record(ctx context.Context, e Event) error
}
