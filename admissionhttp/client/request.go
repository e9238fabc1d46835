package client

import (
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/spillway-go/spillway"
)

// longestDeadline is the largest number that servers read: eight digits, 27 hours.
const longestDeadline = 99_999_999

// prepare returns a copy of req with the headers for its context. A RoundTripper must not change
// the request itself.
func prepare(req *http.Request) *http.Request {
	ctx := req.Context()
	next := req.WithContext(ctx)
	next.Header = req.Header.Clone()
	if next.Header == nil {
		next.Header = http.Header{}
	}
	next.Header.Del(priorityHeader)
	next.Header.Del(deadlineHeader)
	switch p := spillway.PriorityFrom(ctx); p {
	case spillway.Low, spillway.High, spillway.Critical:
		next.Header.Set(priorityHeader, p.String())
	}
	if end, ok := ctx.Deadline(); ok {
		left := min(max(time.Until(end).Milliseconds(), 1), longestDeadline)
		next.Header.Set(deadlineHeader, strconv.FormatInt(left, 10))
	}
	return next
}

// again returns req with a fresh body.
func again(req *http.Request) (*http.Request, error) {
	if req.Body == nil || req.Body == http.NoBody {
		return req, nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil, err
	}
	next := req.WithContext(req.Context())
	next.Body = body
	return next, nil
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		_ = req.Body.Close() // the request is not sent: nothing can be lost
	}
}

// defaultStall is how long discard reads the rest of an unused answer.
const defaultStall = time.Second

// shortAnswer is how many bytes of an unused answer discard reads.
const shortAnswer = 4096

// discard closes the body of an unused answer. It first reads a short body to its end, so that the
// connection can be used again, unless the rest takes longer than stall. Only the end shows how
// long a chunked or compressed answer is.
func (t *Transport) discard(resp *http.Response) {
	if resp == nil {
		return
	}
	if !resp.Close && resp.ContentLength != 0 && resp.ContentLength <= shortAnswer {
		late := time.AfterFunc(t.stall, func() { _ = resp.Body.Close() })
		_, _ = io.CopyN(io.Discard, resp.Body, shortAnswer+1)
		late.Stop()
	}
	_ = resp.Body.Close()
}
