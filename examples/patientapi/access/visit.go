package access

import (
	"context"
	"slices"
	"sync"
)

// Visit is one request as access sees it: who asks, for what, and whose data it has
// touched. Package front makes one for each request and lets operations find it.
// It is safe for concurrent use.
type Visit struct {
	Principal Principal
	Resource  Resource
	Action    Action

	mu       sync.Mutex
	patients []string
	known    map[string]struct{} // of patients, once they are many
	more     int
	denied   bool
}

// MaxNamed is the most patients that a Visit names. An export of everybody touches more.
const MaxNamed = 1000

// Begin decides what can be decided before a request is read, as Allowed does, and
// names no patient. Its argument is empty where it is not yet known whom the request is
// about, and need not be the id of a patient. The error is ErrDenied.
func (v *Visit) Begin(patient string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.denied = v.denied || !Allowed(v.Principal, v.Resource, v.Action, patient)
	return v.verdict()
}

// Touch must be called before data of those patients is asked for, or, of those that a
// search has found, before it is sent: it decides, and the audit knows whom the request
// was about. The error is ErrDenied; once there was one, every later call has it as
// well. An id that is empty is denied.
func (v *Visit) Touch(patients ...string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range patients {
		v.name(id)
		if id == "" || !Allowed(v.Principal, v.Resource, v.Action, id) {
			v.denied = true
		}
	}
	return v.verdict()
}

// Shows reports whether an answer may hold what of r belongs to the patients whom the visit
// has touched, or r itself where r belongs to none. It takes what a search for r takes, so
// that there is one lock to what is found beside something else and to what is asked for
// alone; in an export it takes what an export takes. What is not shown is left out, and the
// visit is not denied.
func (v *Visit) Shows(r Resource) bool {
	action := v.Action
	if action == Read && r != v.Resource {
		action = Search // read by the id of another resource: a list
	}
	return Allowed(v.Principal, r, action, "")
}

// Claim decides whether the caller may use what has that ticket. The error is ErrDenied:
// answer it as if there were nothing of that name.
func (v *Visit) Claim(ticket string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.denied = v.denied || !Holds(v.Principal, ticket)
	return v.verdict()
}

func (v *Visit) verdict() error {
	if v.denied {
		return ErrDenied
	}
	return nil
}

// name notes that the request was about the patient of that id.
func (v *Visit) name(id string) {
	const few = 16
	if v.known == nil && len(v.patients) == few {
		v.known = make(map[string]struct{}, 4*few)
		for _, p := range v.patients {
			v.known[p] = struct{}{}
		}
	}
	if _, known := v.known[id]; known || v.known == nil && slices.Contains(v.patients, id) {
		return
	}
	if len(v.patients) == MaxNamed {
		v.more++
		return
	}
	v.patients = append(v.patients, id)
	if v.known != nil {
		v.known[id] = struct{}{}
	}
}

// Own returns the only patient whose data a search may find, and true, where there is
// such a restriction: ask the store for that id alone.
func (v *Visit) Own() (id string, restricted bool) {
	return v.Principal.Patient, onlyOwn(v.Principal)
}

// Patients returns whom the request was about so far, without doubles and at most
// MaxNamed of them. The caller must not change them.
func (v *Visit) Patients() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clip(v.patients) // what is in it stays as it is
}

// Unnamed returns how many patients there were beyond those of Patients.
func (v *Visit) Unnamed() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.more
}

// Denied reports whether Begin, Touch or Claim has refused.
func (v *Visit) Denied() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.denied
}

type visitKey struct{}

// NewContext returns ctx with v in it.
func NewContext(ctx context.Context, v *Visit) context.Context {
	return context.WithValue(ctx, visitKey{}, v)
}

// FromContext returns the Visit in ctx. Without one it returns a new Visit with the zero
// Principal, which is denied everything.
func FromContext(ctx context.Context) *Visit {
	if v, ok := ctx.Value(visitKey{}).(*Visit); ok {
		return v
	}
	return new(Visit)
}
