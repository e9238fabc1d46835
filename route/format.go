package route

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/route/internal/shape"
)

// ProblemFormat writes the bodies of problems in another format than application/problem+json, such
// as an OperationOutcome of FHIR. Status, headers and the mapping of errors to problems do not
// change.
type ProblemFormat struct {
	// MediaType is the media type of the bodies.
	MediaType string

	// Encode returns the body for p, whose Status and Title are set and whose Type
	// is a URI. It must neither change nor keep p. After an error the problem is
	// written as application/problem+json, and Config.Report receives the error.
	Encode func(p *Problem) ([]byte, error)

	// Schema is the JSON Schema of the bodies in the OpenAPI document; nil omits the schema.
	Schema map[string]any
}

func (f *ProblemFormat) check() error {
	switch {
	case f.Encode == nil && f.MediaType == "" && f.Schema == nil:
		return nil
	case f.Encode == nil:
		return errors.New("no Encode")
	}
	return producible(f.MediaType)
}

const problemMedia = "application/problem+json"

// encode returns the content type and the body of p, which is complete.
func (f *ProblemFormat) encode(p *Problem) (contentType string, body []byte, err error) {
	if f.Encode != nil {
		if body, err = f.Encode(p); err == nil {
			return f.MediaType, body, nil
		}
		err = fmt.Errorf("encode problem: %w", err)
	}
	// Strings and numbers only: Marshal cannot fail.
	body, _ = json.Marshal(&problemJSON{Type: p.Type, Title: p.Title, Status: p.Status, Detail: p.Detail, Errors: p.Errors})
	return problemMedia, extend(body, p.Members), err
}

// problemJSON is the JSON form of a Problem.
type problemJSON struct {
	Type   string  `json:"type,omitempty"`
	Title  string  `json:"title"`
	Status int     `json:"status"`
	Detail string  `json:"detail,omitempty"`
	Errors []Fault `json:"errors,omitempty"`
}

// extend adds further members to an object. Members that cannot be encoded are left out.
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

// answerError makes a problem of err and writes it. With Discreet it removes names that a client
// may have chosen from the faults; known tells which names are known. It returns the status and the
// size of the body.
func (c *Config) answerError(w http.ResponseWriter, r *http.Request, pattern string, known *shape.Plan, err error) (status int, n int64) {
	p, expected := c.Errors.answer(r.Context(), err)
	if !expected {
		c.report(r, pattern, err)
	}
	if c.Discreet && known != nil {
		p.Errors = discreet(known, p.Errors)
	}
	return c.writeProblem(w, r, pattern, &p, err)
}

// writeProblem writes p, the problem for err. All problems are written here.
func (c *Config) writeProblem(w http.ResponseWriter, r *http.Request, pattern string, p *Problem, err error) (status int, n int64) {
	if c.OnProblem != nil {
		p.unshare()
		c.OnProblem(w, r, p, err)
	}
	p.complete(c.problemBase())
	contentType, body, bad := c.ProblemFormat.encode(p)
	if bad != nil {
		c.report(r, pattern, bad)
	}
	if r.ProtoMajor <= 2 && isStopping(err) {
		w.Header().Set("Connection", "close") // for HTTP/2 net/http sends GOAWAY
	}
	return p.Status, p.write(w, contentType, body)
}

// isStopping reports whether err refuses a request because this instance stops. The client should
// then close the connection, so that its next request reaches another instance.
func isStopping(err error) bool {
	rej, ok := errors.AsType[*spillway.Rejection](err)
	return ok && rej != nil && (rej.Reason == spillway.ReasonDraining || rej.Reason == spillway.ReasonClosed)
}

func (c *Config) report(r *http.Request, pattern string, err error) {
	if c.Report != nil {
		c.Report(r.Context(), pattern, err)
	}
}
