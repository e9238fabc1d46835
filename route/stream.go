package route

import (
	"fmt"
	"io"
	"net/http"
)

// Stream is a response that is written as it is made. Write is called once, in
// the goroutine of the request, and should end with the context the handler was
// given; each of its writes is flushed to the client. An error before the first
// write is answered as any other; a later one aborts the connection, so that the
// client does not take the part for the whole, and Config.Report is told. Write
// is not called where the answer has no content, as with HEAD; what is to be
// given back either way is for a Releaser.
type Stream struct {
	ContentType string // empty means application/octet-stream
	Write       func(w io.Writer) error
}

func (f *Stream) serve(w http.ResponseWriter, r *http.Request, t *progress, status int, headers HeaderSetter) error {
	if f.Write == nil {
		return fmt.Errorf("a Stream has no Write")
	}
	out := &flushed{w: w, status: status, progress: *t, headers: headers, contentType: f.ContentType, control: http.NewResponseController(w)}
	if r.Method == http.MethodHead || bodiless(status) {
		out.begin()
		return nil
	}
	err := f.Write(out)
	switch {
	case err == nil && !out.begun:
		out.begin()
	case err != nil && out.begun:
		return lateError{err}
	}
	return err
}

// lateError is one that came when a part of the answer was sent.
type lateError struct{ error }

// flushed sends each write on its way at once.
type flushed struct {
	w           http.ResponseWriter
	control     *http.ResponseController
	progress    progress
	headers     HeaderSetter
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
	f.progress.sends(f.status)
	f.w.WriteHeader(f.status)
}

func (f *flushed) Write(b []byte) (int, error) {
	if !f.begun {
		f.begin()
	}
	n, err := f.w.Write(b)
	f.progress.sent(int64(n))
	if err == nil {
		_ = f.control.Flush() // a writer that cannot flush sends when it wants
	}
	return n, err
}
