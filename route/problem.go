package route

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Problem is an RFC 9457 answer, and an error that a handler may return directly.
type Problem struct {
	Status int // from 200 to 999; any other value means 500
	// Type is a URI, or a short name that is appended to Config.ProblemBase. Empty means
	// about:blank: the status is the whole information.
	Type   string
	Title  string // empty means the status text
	Detail string // text that the client may read
	Errors []Fault

	// Members are further members of the answer, such as the id of a request. They cannot replace
	// the members above.
	Members map[string]any

	// RetryAfter is sent in whole seconds, rounded up. Zero sends none.
	RetryAfter time.Duration
}

func (p *Problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Type, p.Detail) }

// Fault is one error in a request. It names the expected form and never repeats a value.
type Fault struct {
	Detail    string `json:"detail"`
	Pointer   string `json:"pointer,omitempty"`   // into the body: a JSON Pointer as a URI fragment
	Parameter string `json:"parameter,omitempty"` // or the name of a parameter or form field
	In        string `json:"in,omitempty"`        // of the parameter: path, query, header or form
}

// InvalidError is a request with faults, at most 32 of which are listed. The answer is 400 unless a
// rule of Errors maps the error. A Validate method may return an InvalidError.
type InvalidError struct{ Faults []Fault }

func (e *InvalidError) Error() string {
	var b strings.Builder
	b.WriteString("invalid request")
	for _, f := range e.Faults {
		fmt.Fprintf(&b, "; %s%s %s", f.Pointer, f.Parameter, f.Detail)
	}
	return b.String()
}

// statusClientLeft is the status of a client that left before its answer, as in server logs. The status
// is sent nevertheless: a client that has closed only its own side reads it, and net/http would
// answer 200 for a handler that writes nothing.
const statusClientLeft = 499

func (p *Problem) status() int {
	if p.Status < 200 || p.Status > 999 { // net/http would panic, or wait for more
		return http.StatusInternalServerError
	}
	return p.Status
}

// uri returns the type as written in the answer.
func (p *Problem) uri(base string) string {
	if p.Type != "" && !strings.Contains(p.Type, ":") {
		return base + p.Type
	}
	return p.Type
}

// unshare replaces the members and faults of p, a copy, so that p shares nothing with its original.
func (p *Problem) unshare() { p.Members, p.Errors = maps.Clone(p.Members), slices.Clone(p.Errors) }

// complete fills the fields that a Problem may omit.
func (p *Problem) complete(base string) {
	p.Status, p.Type = p.status(), p.uri(base)
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
}

func (p *Problem) write(w http.ResponseWriter, contentType string, body []byte) int64 {
	h := w.Header()
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((p.RetryAfter+time.Second-1)/time.Second), 10))
	}
	media := problemContent
	if contentType != problemMedia {
		media = []string{contentType}
	}
	return writeProblemBody(w, p.Status, media, []string{strconv.Itoa(len(body))}, body)
}

// problemContent and noStore are shared by all problems. See jsonContent.
var problemContent, noStore = []string{problemMedia}, []string{"no-store"}

// writeProblemBody writes a problem. contentType and length are the values of their headers.
func writeProblemBody(w http.ResponseWriter, status int, contentType, length []string, body []byte) int64 {
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = contentType, noStore
	delete(h, "Etag") // ETag and Last-Modified describe the success that failed
	delete(h, "Last-Modified")
	h["Content-Length"] = length // the answer is complete even if the handler ends by runtime.Goexit
	w.WriteHeader(status)
	n, _ := w.Write(body) // a client that left is not an error
	return int64(n)
}
