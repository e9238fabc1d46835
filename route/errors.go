package route

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/route/internal/wire"
)

// Errors maps the errors of handlers to problems; the first rule that matches wins. An error
// without a matching rule is mapped as follows:
//
//	*Problem                   itself
//	*InvalidError              400 with its faults
//	*spillway.Rejection        503, or 429 for a quota, with Retry-After
//	context.DeadlineExceeded   504
//	context.Canceled           499 if the client has left, else 500, or 504 if its time is up
//	anything else              500 without details, and Config.Report is called
//
// A rule returns the problem for an error, and whether the rule is for that error. Is and As make the
// usual rules.
type Errors []func(err error) (p Problem, ok bool)

// Is maps errors that match target, by errors.Is, to p. The zero Problem is a bare 500 that counts
// as expected: Config.Report is not called.
func Is(target error, p Problem) func(error) (Problem, bool) {
	return func(err error) (Problem, bool) { return p, errors.Is(err, target) }
}

// As maps errors that have an E in their tree, by errors.As, to the result of problem. The status
// of the result is status, unless problem sets another status.
func As[E error](status int, problem func(E) Problem) func(error) (Problem, bool) {
	return func(err error) (Problem, bool) {
		e, ok := errors.AsType[E](err)
		if !ok {
			return Problem{}, false
		}
		p := problem(e)
		if p.Status == 0 {
			p.Status = status
		}
		return p, true
	}
}

// overloaded is the registered problem type of overload.
const overloaded = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"

var errInternal = errors.New("internal")

// answer translates err like problem, for a request with the context ctx. The problem says that the
// client left only if ctx was cancelled, not if another context was.
func (e Errors) answer(ctx context.Context, err error) (p Problem, expected bool) {
	p, expected = e.problem(err)
	if p.Status != statusClientLeft || ctx.Err() == context.Canceled {
		return p, expected
	}
	if late := ctx.Err(); late != nil {
		return e.problem(late)
	}
	return Errors(nil).problem(errInternal)
}

// problem translates err, and reports whether err was expected.
func (e Errors) problem(err error) (p Problem, expected bool) {
	p, expected = e.match(err)
	p.Status = p.status()
	return p, expected
}

func (e Errors) match(err error) (p Problem, expected bool) {
	for _, rule := range e {
		if p, ok := rule(err); ok {
			return p, true
		}
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return *p, true
	}
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		return Problem{Status: http.StatusBadRequest, Type: "invalid-request", Detail: "the request has faults; each is listed", Errors: invalid.Faults[:min(len(invalid.Faults), wire.MaxFaults)]}, true
	}
	if rej, ok := errors.AsType[*spillway.Rejection](err); ok {
		p := Problem{Status: http.StatusServiceUnavailable, Type: overloaded, Title: "Temporary Reduced Capacity",
			Detail: "not admitted: " + rej.Reason.String(), RetryAfter: max(rej.RetryAfter, time.Second)}
		if rej.Reason == spillway.ReasonQuota {
			p.Status = http.StatusTooManyRequests
		}
		return p, true
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return Problem{Status: http.StatusGatewayTimeout, Type: "timeout", Detail: "the answer did not arrive in time"}, true
	case errors.Is(err, context.Canceled):
		return Problem{Status: statusClientLeft, Type: "client-left", Title: "Client Closed Request", Detail: "the client closed the connection before it was answered"}, true
	}
	return Problem{Status: http.StatusInternalServerError, Type: "internal", Detail: "something went wrong here"}, false
}
