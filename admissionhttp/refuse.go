package admissionhttp

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/spillway-go/spillway"
)

// Refuse answers a request that a limiter did not admit, in one call:
//
//	permit, err := lim.Acquire(r.Context())
//	if admissionhttp.Refuse(w, r, err) {
//		return
//	}
//	defer permit.Release()
//	permit.Done(work(r.Context()))
//
// Refuse reports whether err is a refusal: a rejection, or the error of the context that ended the
// wait. For any other err it writes nothing. Retry-After is measured and jittered.
// If a deadline passed before the admission, the answer is deadline_too_close. The limiter counts the
// same if it stands in front of the service: call Limiter.Front.
// Pass the error of the limiter, not of the work. In the error of Limiter.Do, a deadline may be the
// work's own, and would be answered as a refusal. After Limiter.Do, refuse only a
// *spillway.Rejection (errors.AsType).
// The body of the request is left unread: net/http drains a short body, or closes the connection.
func Refuse(w http.ResponseWriter, r *http.Request, err error) bool {
	p, advice := pageOf(err)
	if p == nil {
		return false
	}
	p.write(w, r, wholeSeconds(spread(max(advice, time.Second))), nil)
	return true
}

// problemDetails is the body of a refusal, as problem details of RFC 9457.
type problemDetails struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	Reason string `json:"reason"` // of the rejection, "rejected" without a known one, or "cancelled"
}

// page is a refusal, ready to be sent. A page never changes: all its answers share its header
// values.
type page struct {
	status    int
	retry     bool                // sends Retry-After
	stops     bool                // the instance is stopping: the client should find another one
	rejection *spillway.Rejection // for the log
	reason    []string
	body      []byte
}

const (
	typeBase   = "https://iana.org/assignments/http-problem-types#"
	statusGone = 499 // for logs, as nginx does: no client reads the answer
)

var (
	noStore = []string{"no-store"}
	closing = []string{"close"}
	problem = []string{"application/problem+json"}

	pages     = makePages()
	otherPage = newPage("rejected", capacity)
	gonePage  = newPage("cancelled", problemDetails{Status: statusGone, Type: "about:blank", Title: "Client Closed Request"})
	seconds   = makeSeconds()
)

var capacity = problemDetails{
	Status: http.StatusServiceUnavailable, Type: typeBase + "temporary-reduced-capacity",
	Title: "Temporarily reduced capacity", Detail: "The service has no capacity left for this request. It was not started.",
}

// reasonSlots exceeds the number of reasons.
const reasonSlots = 16

func makePages() (all [reasonSlots]*page) {
	for i := range all {
		f := capacity
		reason := spillway.Reason(i)
		switch reason {
		case spillway.ReasonDeadlineTooClose:
			f.Detail = "The service cannot do this in the time that is left for the request."
		case spillway.ReasonQuota:
			f.Status, f.Type, f.Title = http.StatusTooManyRequests, typeBase+"quota-exceeded", "Quota exceeded"
			f.Detail = "This caller uses more than its share of the service. The request was not started."
		case spillway.ReasonDraining, spillway.ReasonClosed:
			f.Detail = "This instance is stopping. The request was not started."
		}
		all[i] = newPage(reason.String(), f)
		all[i].rejection = &spillway.Rejection{Reason: reason}
		all[i].stops = reason == spillway.ReasonDraining || reason == spillway.ReasonClosed
	}
	return all
}

func newPage(reason string, f problemDetails) *page {
	f.Reason = reason
	body, _ := json.Marshal(f) // strings and numbers: Marshal cannot fail
	return &page{
		rejection: &spillway.Rejection{}, status: f.Status, retry: f.Status != statusGone, body: body,
		reason: []string{reason},
	}
}

// pageOf returns the answer to err and its Retry-After advice, or nil if err is no refusal.
func pageOf(err error) (*page, time.Duration) {
	rej, ok := err.(*spillway.Rejection)
	if !ok && err != nil {
		rej, ok = errors.AsType[*spillway.Rejection](err)
	}
	switch {
	case err == nil || ok && rej == nil:
		return nil, 0
	case ok && int(rej.Reason) < len(pages):
		return pages[rej.Reason], rej.RetryAfter
	case ok:
		return otherPage, rej.RetryAfter
	case errors.Is(err, spillway.ErrRejected):
		return otherPage, 0
	case errors.Is(err, context.DeadlineExceeded):
		return pages[spillway.ReasonDeadlineTooClose], 0
	case errors.Is(err, context.Canceled):
		return gonePage, 0
	}
	return nil, 0
}

// write answers r. If body is not nil, body writes the status and the body of the answer.
func (p *page) write(w http.ResponseWriter, r *http.Request, after int, body func(http.ResponseWriter, *http.Request, int)) {
	h := w.Header()
	// Of an answer not sent. As in http.Error, Content-Encoding stays, and net/http sets Content-Length:
	// middleware may compress the body on its way.
	for _, name := range [...]string{"Content-Length", "Etag", "Last-Modified"} {
		delete(h, name)
	}
	h["Cache-Control"] = noStore
	h[HeaderReason] = p.reason
	if p.retry {
		h["Retry-After"] = seconds[after]
	}
	switch {
	case p.stops && r.ProtoMajor <= 2, r.ProtoMajor == 1 && !drainable(w, r):
		h["Connection"] = closing // in HTTP/2, net/http sends GOAWAY and finishes the requests in progress
	}
	if body != nil {
		body(w, r, p.status)
		return
	}
	h["Content-Type"] = problem
	w.WriteHeader(p.status)
	_, _ = w.Write(p.body) // a client that left is no error
}

// net/http reads a refused body of up to shortBody before it sends the answer, to keep the
// connection. The reading may take drainTime.
const (
	shortBody = 64 << 10
	drainTime = time.Second
)

// drainable reports whether the connection can be kept with the body unread. For Expect:
// 100-continue, the client is not told to continue, and net/http closes the connection.
func drainable(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody:
		return true
	case r.ContentLength < 0 || r.ContentLength > shortBody:
		return false
	}
	// The read deadline lasts until the connection's next request. A writer without read deadlines
	// belongs to no connection, so its error is ignored.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(drainTime))
	return true
}

// longestAdvice bounds Retry-After.
const longestAdvice = time.Minute

func makeSeconds() (all [longestAdvice/time.Second + 1][]string) {
	for i := range all {
		all[i] = []string{strconv.Itoa(i)}
	}
	return all
}

// wholeSeconds rounds d up to whole seconds, from 1 to longestAdvice.
func wholeSeconds(d time.Duration) int {
	return int((min(max(d, 1), longestAdvice) + time.Second - 1) / time.Second)
}

// spread returns a random time up to twice d, so that clients refused together neither return
// together nor leave a gap before the first return. Where twice d would exceed longestAdvice,
// spread cuts d and not the jitter.
func spread(d time.Duration) time.Duration {
	return rand.N(2*min(d, longestAdvice/2) + 1)
}
