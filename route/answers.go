package route

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"

	"github.com/spillway-go/spillway/route/internal/syntax"
)

// Answer documents an answer in the OpenAPI document.
type Answer struct {
	// Description says when the answer occurs. Empty keeps the generated text, such as the status
	// text.
	Description string

	// Headers maps the names of the answer's headers to their descriptions.
	Headers map[string]string

	// Body is any value of the body's type; Empty{} means no body. Nil means the route's default:
	// its response type for a success, else a problem.
	Body any
}

// Answers documents the answer with the given status. It adds headers and text to a known answer,
// or documents a further one, such as 304, the 201 of a route that creates or replaces, or the status
// of an error. Answers does not change the responses of the route. FailsWith documents errors with
// their types and details.
func (r *Route) Answers(status int, a Answer) *Route {
	r.answers = append(r.answers, documentedAnswer{status: status, Answer: a})
	return r
}

// documentedAnswer is an answer that Answers has documented.
type documentedAnswer struct {
	Answer
	status int
}

// body describes how Body is answered. It is nil if Body is nil.
func (a *documentedAnswer) body() (*answer, error) {
	if a.Body == nil {
		return nil, nil
	}
	return answerOf(reflect.TypeOf(a.Body))
}

func (r *Route) checkAnswers() (errs []error) {
	seen := []int{}
	for _, a := range r.answers {
		wrong := func(err error) {
			if err != nil {
				errs = append(errs, fmt.Errorf("answer %d: %w", a.status, err))
			}
		}
		if a.status < 200 || a.status > 599 {
			wrong(errors.New("is no status of an answer"))
		}
		if slices.Contains(seen, a.status) {
			wrong(errors.New("is described twice"))
		}
		seen = append(seen, a.status)
		for name := range a.Headers {
			if !syntax.IsToken(name) {
				wrong(fmt.Errorf("%q is no name of a header", name))
			}
		}
		body, err := a.body()
		wrong(err)
		if err == nil && body != nil && bodiless(a.status) && body.status != http.StatusNoContent {
			wrong(errors.New("has no body"))
		}
	}
	for _, edit := range r.edits {
		if edit == nil {
			errs = append(errs, errors.New("an Operation is nil"))
		}
	}
	return errs
}
