package route

import (
	"io"
	"net/http"
)

// Outcome describes how a request ended.
type Outcome struct {
	// Pattern is the pattern of the route or of the plain handler. It is empty if the Mux answered
	// by itself.
	Pattern string

	// Request is a copy of the handler's request, a value of the request type. It is nil if the
	// request was refused, or could not be bound.
	Request any

	// Status is the status that was sent. It is 0 after a panic before an answer.
	Status int

	// Bytes is the number of body bytes written; 0 for HEAD.
	Bytes int64

	// Err is the error that was answered as a problem, or that aborted a Stream.
	Err error
}

// observe calls Observe, if there is one.
func (c *Config) observe(r *http.Request, o *Outcome) {
	if c.Observe == nil {
		return
	}
	if r.Method == http.MethodHead {
		o.Bytes = 0 // net/http drops the body
	}
	c.Observe(r, *o)
}

// progress holds the timing and the outcome of one request.
type progress struct {
	timing
	outcome *Outcome // nil without Config.Observe
}

func (p *progress) setStatus(status int) {
	if p.outcome != nil {
		p.outcome.Status = status
	}
}

func (p *progress) addBytes(n int64) {
	if p.outcome != nil {
		p.outcome.Bytes += n
	}
}

func (p *progress) setError(err error) {
	if p.outcome != nil {
		p.outcome.Err = err
	}
}

// watched returns w, or a writer around w that records a response written by another package.
func (p *progress) watched(w http.ResponseWriter) http.ResponseWriter {
	if p.outcome == nil {
		return w
	}
	return &watching{w, p.outcome}
}

type watching struct {
	http.ResponseWriter
	outcome *Outcome
}

func (w *watching) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *watching) WriteHeader(status int) {
	if status >= 200 && w.outcome.Status == 0 {
		w.outcome.Status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *watching) begin() {
	if w.outcome.Status == 0 {
		w.outcome.Status = http.StatusOK
	}
}

func (w *watching) Write(b []byte) (int, error) {
	w.begin()
	n, err := w.ResponseWriter.Write(b)
	w.outcome.Bytes += int64(n)
	return n, err
}

// ReadFrom lets the connection copy a file directly.
func (w *watching) ReadFrom(from io.Reader) (int64, error) {
	w.begin()
	n, err := io.Copy(w.ResponseWriter, from)
	w.outcome.Bytes += n
	return n, err
}
