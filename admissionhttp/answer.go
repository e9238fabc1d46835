package admissionhttp

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/spillway-go/spillway/limiter"
)

// work is an admitted request, and the ResponseWriter of its handler. work sees the status, and
// whether the answer becomes a stream. Each request has a new work, never reused: a handler may
// keep it.
type work struct {
	http.ResponseWriter
	guard  *guard
	class  string // for Keyed
	scope  scope  // of the handler; without a context if the handler has the one of the request
	permit limiter.Permit
	ticket ticket
	status int
	stream bool        // expected to be a stream: the first flush makes it one
	long   bool        // has become a stream
	proven func() bool // lifts the deadline of a request that claims to be a stream; nil: none

	// held counts the parts that still run: the handler, and with Config.Hold each holder. The last
	// part ends the permit with outcome: the handler's, or an expired deadline.
	held    atomic.Int32
	outcome error
	broken  bool // the handler did not return: no sample
}

// writer returns w with the optional interfaces of the writers below. Code that needs an interface
// answers 500 or panics without it. Around other writers, Push is left out: HTTP/1 has no Push, so
// no code needs it.
func (w *work) writer() http.ResponseWriter {
	var flushes, hijacks, notifies bool
	for below := w.ResponseWriter; below != nil; {
		switch below.(type) {
		case http1:
			return http1Work{w}
		case http2:
			return http2Work{w}
		}
		flushes = flushes || is[http.Flusher](below)
		hijacks = hijacks || is[http.Hijacker](below)
		notifies = notifies || is[closeNotifier](below)
		u, ok := below.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		below = u.Unwrap()
	}
	switch {
	case flushes && hijacks && notifies:
		return flushHijackNotifyWork{w}
	case flushes && hijacks:
		return flushHijackWork{w}
	case flushes && notifies:
		return flushNotifyWork{w}
	case hijacks && notifies:
		return hijackNotifyWork{w}
	case flushes:
		return flushWork{w}
	case hijacks:
		return hijackWork{w}
	case notifies:
		return notifyWork{w}
	}
	return w
}

func is[T any](w http.ResponseWriter) bool {
	_, ok := w.(T)
	return ok
}

// http1 has the interfaces of net/http's HTTP/1 writer.
type http1 interface {
	http.Flusher
	http.Hijacker
	io.ReaderFrom
	closeNotifier
}

// http2 has the interfaces of net/http's HTTP/2 writer.
type http2 interface {
	http.Flusher
	http.Pusher
	closeNotifier
}

type closeNotifier interface{ CloseNotify() <-chan bool }

type (
	http1Work struct{ *work }
	http2Work struct{ *work }

	// For writers that wrap net/http's writer.
	flushWork             struct{ *work }
	hijackWork            struct{ *work }
	notifyWork            struct{ *work }
	flushHijackWork       struct{ *work }
	flushNotifyWork       struct{ *work }
	hijackNotifyWork      struct{ *work }
	flushHijackNotifyWork struct{ *work }
)

// Unwrap lets http.ResponseController reach the connection.
func (w *work) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *work) WriteHeader(status int) {
	if w.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		w.status = status
		if status == http.StatusSwitchingProtocols {
			w.isStream()
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *work) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(p)
}

func (w *work) WriteString(s string) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return io.WriteString(w.ResponseWriter, s)
}

// FlushError is what http.ResponseController calls.
func (w *work) FlushError() error {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if !w.long && (w.stream || streams(w.Header().Get("Content-Type"))) {
		w.isStream()
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *work) isStream() {
	w.long = true
	w.permit.Long()
	if w.proven != nil {
		w.proven()
	}
	w.guard.leave(&w.ticket) // a share is of slots; a stream holds none
}

func (w *work) flush() { _ = w.FlushError() }

func (w *work) hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.isStream()
	}
	return conn, rw, err
}

func (w *work) closeNotify() <-chan bool {
	for below := w.ResponseWriter; ; {
		switch b := below.(type) {
		case closeNotifier:
			return b.CloseNotify()
		case interface{ Unwrap() http.ResponseWriter }:
			below = b.Unwrap()
		default:
			return nil
		}
	}
}

func (w flushWork) Flush() { w.flush() }

func (w hijackWork) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

func (w notifyWork) CloseNotify() <-chan bool { return w.closeNotify() }

func (w flushHijackWork) Flush()                                       { w.flush() }
func (w flushHijackWork) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }

func (w flushNotifyWork) Flush()                   { w.flush() }
func (w flushNotifyWork) CloseNotify() <-chan bool { return w.closeNotify() }

func (w hijackNotifyWork) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }
func (w hijackNotifyWork) CloseNotify() <-chan bool                     { return w.closeNotify() }

func (w flushHijackNotifyWork) Flush()                                       { w.flush() }
func (w flushHijackNotifyWork) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }
func (w flushHijackNotifyWork) CloseNotify() <-chan bool                     { return w.closeNotify() }

func (w http1Work) Flush()                                       { w.flush() }
func (w http1Work) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.hijack() }
func (w http1Work) CloseNotify() <-chan bool                     { return w.closeNotify() }
func (w http1Work) ReadFrom(src io.Reader) (int64, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if to, ok := w.ResponseWriter.(io.ReaderFrom); ok {
		return to.ReadFrom(src)
	}
	return io.Copy(struct{ io.Writer }{w.ResponseWriter}, src)
}

func (w http2Work) Flush()                   { w.flush() }
func (w http2Work) CloseNotify() <-chan bool { return w.closeNotify() }
func (w http2Work) Push(target string, opts *http.PushOptions) error {
	if p, ok := w.ResponseWriter.(http.Pusher); ok {
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}
