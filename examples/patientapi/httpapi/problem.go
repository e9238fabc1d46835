package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi"
)

// problem is an RFC 9457 answer, and an error until it is one.
type problem struct {
	Type      string `json:"type"` // a short name here; a URI when written
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Detail    string `json:"detail,omitempty"`
	Field     string `json:"field,omitempty"` // that is wrong
	RequestID string `json:"request_id,omitempty"`

	retryAfter time.Duration
	overload   bool
}

func (p *problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Type, p.Detail) }

// registered are the types that IANA keeps; all others are our own.
const registered = "https://iana.org/assignments/http-problem-types#"

// statusGone is logged for a client that left before its answer. Nothing is
// sent: nobody is there.
const statusGone = 499

// problemOf translates an error into what the client is told.
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if rej, ok := errors.AsType[*spillway.Rejection](err); ok {
		return &problem{Status: http.StatusServiceUnavailable, Type: "temporary-reduced-capacity",
			Detail: "the service is at its capacity: " + rej.Reason.String(), retryAfter: rej.RetryAfter, overload: true}
	}
	if f, ok := errors.AsType[*patientapi.FieldError](err); ok {
		return &problem{Status: http.StatusBadRequest, Type: "malformed-field", Field: f.Field, Detail: f.Field + ": want " + f.Want}
	}
	switch {
	case errors.Is(err, patientapi.ErrMalformedID):
		return &problem{Status: http.StatusBadRequest, Type: "malformed-id", Detail: "an id is P and six digits, such as P000042"}
	case errors.Is(err, patientapi.ErrNotFound):
		return &problem{Status: http.StatusNotFound, Type: "unknown-patient", Detail: "there is no patient of that id"}
	case errors.Is(err, context.DeadlineExceeded):
		return &problem{Status: http.StatusGatewayTimeout, Type: "timeout", Detail: "the answer did not arrive in time"}
	case errors.Is(err, context.Canceled):
		return &problem{Status: statusGone, Type: "client-left"}
	case errors.Is(err, patientapi.ErrUnavailable):
		return &problem{Status: http.StatusBadGateway, Type: "store-unavailable", Detail: "the patient store did not answer"}
	}
	return &problem{Status: http.StatusInternalServerError, Type: "internal", Detail: "something went wrong here; it has been logged"}
}

// write answers the request with p. Every header is set before the body is
// begun: one that comes later is never sent.
func (p *problem) write(w http.ResponseWriter, requestID string) {
	if p.Status == statusGone {
		return
	}
	out := *p
	out.Title, out.RequestID = http.StatusText(p.Status), requestID
	h := w.Header()
	if p.overload {
		out.Type, out.Title = registered+p.Type, "Temporary Reduced Capacity"
		h.Set("Retry-After", retryAfter(p.retryAfter))
	} else {
		out.Type = "urn:patientapi:problem:" + p.Type
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	body, _ := json.Marshal(&out) // strings and a number: it cannot fail
	body = append(body, '\n')
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	_, _ = w.Write(body)
}

// retryAfter writes an advice in whole seconds, rounded up, at least 1: an
// advice of 300 ms written as 0 would invite a stampede.
func retryAfter(d time.Duration) string {
	return strconv.FormatInt(max(int64((d+time.Second-1)/time.Second), 1), 10)
}
