package route

import (
	"fmt"
	"io"
	"net/http"
)

// Stream is a response that is written in parts. Write is called once, in the goroutine of the
// request, and should return when the handler's context ends; each of its writes is flushed to the
// client. An error before the first write is answered like any other. A later error aborts the
// connection, so that the client does not take the part for the whole. Config.Report receives the
// later error, unless the client has left. Write is not called if the answer has no content, as
// with HEAD. Implement [Releaser] to free resources in both cases.
type Stream struct {
	ContentType string // empty means application/octet-stream
	Write       func(w io.Writer) error
}

func (s *Stream) serve(w http.ResponseWriter, r *http.Request, t *progress, status int, headers http.Header) error {
	if s.Write == nil {
		return fmt.Errorf("a Stream has no Write")
	}
	out := &flushed{w: w, status: status, progress: *t, headers: headers, contentType: s.ContentType, control: http.NewResponseController(w)}
	if r.Method == http.MethodHead || bodiless(status) {
		out.begin()
		return nil
	}
	err := s.Write(out)
	switch {
	case err == nil && !out.begun:
		out.begin()
	case err != nil && out.begun:
		return lateError{err}
	}
	return err
}

// lateError is an error after a part of the answer was sent.
type lateError struct{ error }

// flushed flushes after each write.
type flushed struct {
	w           http.ResponseWriter
	control     *http.ResponseController
	progress    progress
	headers     http.Header
	contentType string
	status      int
	begun       bool
}

func (f *flushed) begin() {
	f.begun = true
	h := f.w.Header()
	set(h, f.headers)
	if f.contentType != "" {
		h.Set("Content-Type", f.contentType)
	} else if _, chosen := h["Content-Type"]; !chosen {
		h.Set("Content-Type", "application/octet-stream")
	}
	f.progress.write(h)
	f.progress.setStatus(f.status)
	f.w.WriteHeader(f.status)
}

func (f *flushed) Write(b []byte) (int, error) {
	if !f.begun {
		f.begin()
	}
	n, err := f.w.Write(b)
	f.progress.addBytes(int64(n))
	if err == nil {
		_ = f.control.Flush() // not all writers can flush
	}
	return n, err
}
