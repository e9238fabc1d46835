package route

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Problem is an answer of RFC 9457, and an error that a handler may return as
// it is.
type Problem struct {
	Status int // from 200 to 999; any other stands for 500
	// Type is a URI, or a short name that is put behind Config.ProblemBase.
	// Empty means about:blank: the status says it all.
	Type   string
	Title  string // empty means the status text
	Detail string // what this client may read
	Errors []Fault

	// Members are further members of the answer, such as the id of a request.
	// Those above cannot be replaced.
	Members map[string]any

	// RetryAfter is sent in whole seconds, rounded up. Zero sends none.
	RetryAfter time.Duration
}

func (p *Problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Type, p.Detail) }

// Fault is one thing that is wrong with a request. It says what is expected and
// never repeats a value.
type Fault struct {
	Detail    string `json:"detail"`
	Pointer   string `json:"pointer,omitempty"`   // into the body: a JSON Pointer as a URI fragment
	Parameter string `json:"parameter,omitempty"` // or the name of a parameter or form field
	In        string `json:"in,omitempty"`        // of the parameter: path, query, header or form
}

// InvalidError is a request with faults, at most 32 of which are listed. It is
// answered 400 unless a rule of Errors says otherwise. A Validate method may
// return one.
type InvalidError struct{ Faults []Fault }

func (e *InvalidError) Error() string {
	var b strings.Builder
	b.WriteString("invalid request")
	for _, f := range e.Faults {
		fmt.Fprintf(&b, "; %s%s %s", f.Pointer, f.Parameter, f.Detail)
	}
	return b.String()
}

// problemJSON is how a Problem is written.
type problemJSON struct {
	Type   string  `json:"type,omitempty"`
	Title  string  `json:"title"`
	Status int     `json:"status"`
	Detail string  `json:"detail,omitempty"`
	Errors []Fault `json:"errors,omitempty"`
}

// statusGone stands for a client that left before its answer, as logs have it.
// It is sent all the same: a client that has closed only its own side reads it,
// and net/http would answer 200 for a handler that writes nothing.
const statusGone = 499

func (p *Problem) status() int {
	if p.Status < 200 || p.Status > 999 { // net/http would panic, or wait for more
		return http.StatusInternalServerError
	}
	return p.Status
}

// uri is the type as it is written.
func (p *Problem) uri(base string) string {
	if p.Type != "" && !strings.Contains(p.Type, ":") {
		return base + p.Type
	}
	return p.Type
}

// own makes p, a copy, share nothing with the problem it is a copy of.
func (p *Problem) own() { p.Members, p.Errors = maps.Clone(p.Members), slices.Clone(p.Errors) }

func (p *Problem) write(w http.ResponseWriter, base string) {
	out := problemJSON{Type: p.uri(base), Title: p.Title, Status: p.status(), Detail: p.Detail, Errors: p.Errors}
	if out.Title == "" {
		out.Title = http.StatusText(out.Status)
	}
	h := w.Header()
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10))
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Del("ETag") // of the success that did not happen
	h.Del("Last-Modified")
	body, _ := json.Marshal(&out) // strings and numbers: it cannot fail
	body = extend(body, p.Members)
	h.Set("Content-Length", strconv.Itoa(len(body))) // whole even if the handler ends by runtime.Goexit
	w.WriteHeader(out.Status)
	_, _ = w.Write(body) // a client that left is not an error
}

// extend adds further members to an object. What cannot be encoded is left out.
func extend(object []byte, members map[string]any) []byte {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if slices.Contains(problemMembers, name) {
			continue
		}
		value, err := json.Marshal(members[name])
		if err != nil {
			continue
		}
		key, _ := json.Marshal(name)
		object = append(append(object[:len(object)-1], ','), key...)
		object = append(append(append(object, ':'), value...), '}')
	}
	return object
}

var problemMembers = []string{"type", "title", "status", "detail", "errors"}
