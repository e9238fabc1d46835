package route

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Stream is a response that is written in parts. Write is called once, in the goroutine of the
// request; each of its writes is flushed to the client. Write is not called if the answer has no
// content, as with HEAD. A response that is an io.Closer is closed in both cases.
//
// A stream ends when Write returns, and nothing else ends it: Write must return when a write to w
// fails, and when the handler's context ends. That context ends when the client leaves, when the
// time of Limits.Handle is up, and by [Route.Until]. From then on, and after a write or a flush that
// failed, every write to w returns the error. Neither limiter.Limiter.Drain nor http.Server.Shutdown
// ends a context, and both wait for streams. Only a write deadline of the connection, such as
// http.ResponseController sets, ends a write to a client that takes nothing.
//
// An error before the first write is answered like any other. A later error, of Write or of a write
// to w, aborts the connection, so that the client does not take the part for the whole.
// Config.Report receives the later error, unless the client has left or [Route.Until] ended the
// stream. An endless stream that returns nil when its context ends is complete.
type Stream struct {
	ContentType string // empty means application/octet-stream
	Write       func(w io.Writer) error
}

func (s *Stream) serve(ctx context.Context, w http.ResponseWriter, r *http.Request, t *progress, status int, headers http.Header) error {
	if s.Write == nil {
		return fmt.Errorf("a Stream has no Write")
	}
	out := &flushed{ctx: ctx, w: w, status: status, progress: *t, headers: headers, contentType: s.ContentType, control: http.NewResponseController(w)}
	if r.Method == http.MethodHead || bodiless(status) {
		out.begin()
		return nil
	}
	err := s.Write(out)
	if err == nil {
		err = out.err
	}
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

// flushed flushes after each write. It writes nothing after an error, or after the end of ctx.
type flushed struct {
	ctx         context.Context
	err         error // of the first write that failed
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
	if f.err == nil {
		f.err = f.ctx.Err()
	}
	if f.err != nil {
		return 0, f.err
	}
	if !f.begun {
		f.begin()
	}
	n, err := f.w.Write(b)
	f.progress.addBytes(int64(n))
	if err == nil {
		if err = f.control.Flush(); errors.Is(err, http.ErrNotSupported) {
			err = nil
		}
	}
	f.err = err
	return n, err
}
