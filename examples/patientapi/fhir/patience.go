package fhir

import (
	"context"
	"net/http"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/export"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

// patience is how long an export waits for a client that takes nothing of a part. For the
// store it waits as export.Turn does.
const patience = 30 * time.Second

// turn asks the store under the pattern. Until the answer has begun, the request has its
// own turn, and an error can still be the answer; later it would break the answer off.
func turn[T any](e *stream, fill func(context.Context, *T) error) (*patterns.Answer[T], error) {
	ctx, timeout := e.ctx, e.api.cfg.Timeout
	if e.begun {
		return export.Turn(ctx, e.api.cfg.Runner, timeout, fill)
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return run(ctx, e.api, fill)
}

// paced gives the client time to read each part of a long answer, where the server has a
// deadline for the whole. The first part shows that it is one.
func paced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Time{}) // it would end the request when it passes
		next.ServeHTTP(&pacedWriter{ResponseWriter: w, control: control}, r)
	})
}

type pacedWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	begun   bool
}

// Unwrap lets http.ResponseController reach the connection.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *pacedWriter) Write(part []byte) (int, error) {
	_ = w.control.SetWriteDeadline(time.Now().Add(patience)) // where there are such
	n, err := w.ResponseWriter.Write(part)
	if err == nil && !w.begun && w.long() {
		w.begun = true
		_ = w.control.Flush() // gives the slot back: the rest is the client's time
	}
	return n, err
}

// long reports whether the answer is a file; streams flush by themselves, and problems
// are short.
func (w *pacedWriter) long() bool { return w.Header().Get("Content-Type") == ndjson }
