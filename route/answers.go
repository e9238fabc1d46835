package route

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
)

// Answer documents an answer in the OpenAPI document.
type Answer struct {
	// Description says when it comes. Empty leaves what is known, such as the
	// status text.
	Description string

	// Headers are descriptions of its headers, by their names.
	Headers map[string]string

	// Body is any value of the type that is its body; Empty{} is none. Nil is what
	// the route answers with: its response type for a success, else a problem.
	Body any
}

// Answers documents an answer with that status: headers and words for one that the
// route is known to have, or a further one, such as 304 or the 201 of a route that
// creates or replaces. It does not change what is answered. For problems there are
// also Fails and FailsWith.
func (r *Route) Answers(status int, a Answer) *Route {
	r.answers = append(r.answers, further{status: status, Answer: a})
	return r
}

// further is an answer that a route was told of.
type further struct {
	Answer
	status int
}

// body is how Body is answered; nil if it is left to the route.
func (a *further) body() (*answer, error) {
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
			if !isToken(name) {
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

// described adds the answers that the route was given to its responses.
func (d *document) described(r *Route, responses map[int]object) {
	for _, a := range r.answers {
		response := responses[a.status]
		body, _ := a.body()
		switch {
		case body != nil:
			response = d.answered(r, a.status, body)
		case response == nil && a.status < 400:
			response = d.answered(r, a.status, r.answer)
		case response == nil:
			response = d.response(a.status, &failures{anything: true})
		}
		responses[a.status] = response
		if a.Description != "" {
			response["description"] = a.Description
		}
		if len(a.Headers) == 0 {
			continue
		}
		headers, _ := response["headers"].(object)
		if headers == nil {
			headers = object{}
			response["headers"] = headers
		}
		for name, text := range a.Headers {
			headers[http.CanonicalHeaderKey(name)] = object{"description": text, "schema": object{"type": "string"}}
		}
	}
}
