package admissionhttp

import (
	"bufio"
	"io"
	"math"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"

	"github.com/spillway-go/spillway/limiter"
)

// work is an admitted request, and the ResponseWriter of its handler. work sees the status, and
// whether the answer becomes a stream. Each request has a new work, never reused: a handler may
// keep it.
type work struct {
	http.ResponseWriter
	guard  *guard
	scope  scope // of the handler; without a context if the handler has the one of the request
	permit limiter.Permit
	ticket ticket
	class  string      // of Config.Keyed
	proven func() bool // lifts the deadline of a request that claims to be a stream; nil: none
	status int

	// held counts the parts that still run: the handler, and with Config.Hold each holder. The last
	// part ends the permit with outcome: the handler's, or an expired deadline.
	outcome error
	held    atomic.Int32

	bounded          atomic.Bool // the handler has set a deadline for writing
	listed, left     atomic.Bool // is or was seen by clients; the connection is no longer the handler's
	reading, writing waits       // any goroutine may read the body; the handler's writes the answer
	sight            sight
	room, kept       int32 // bytes that the writer below keeps back, and has kept
	written          int64 // bytes of the answer

	limited bool // scope has a deadline of the middleware
	dryRun  bool
	stream  bool // expected to be a stream: the first flush makes it one
	long    bool // holds no slot: was admitted as long, or has become a stream
	broken  bool // the handler did not return: no sample
	late    bool // has written although the deadline of the middleware has passed
	failed  bool // has tried to change its status to an error
}

// writer returns w with the optional interfaces of the writers below. Code that needs an interface
// answers 500 or panics without it. Around other writers, Push is left out: HTTP/1 has no Push, so
// no code needs it.
func (w *work) writer() http.ResponseWriter {
	var flushes, hijacks, notifies bool
	for below := w.ResponseWriter; below != nil; {
		switch below.(type) {
		case http1:
			if below == w.ResponseWriter {
				w.room = keptByHTTP1
			}
			return http1Work{w}
		case http2:
			if below == w.ResponseWriter {
				w.room = keptByHTTP2
			}
			return http2Work{w}
		}
		// The program caches the results of these assertions. Those to a type parameter are searched for.
		_, f := below.(http.Flusher)
		_, h := below.(http.Hijacker)
		_, n := below.(closeNotifier)
		flushes, hijacks, notifies = flushes || f, hijacks || h, notifies || n
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
	switch {
	case status < 200 && status != http.StatusSwitchingProtocols: // sent at once
		w.permit.Pause()
		defer w.permit.Resume()
	case w.status == 0:
		w.status = status
		if status == http.StatusSwitchingProtocols {
			w.isStream()
		}
	default:
		w.failed = w.failed || status >= 400
	}
	w.ResponseWriter.WriteHeader(status)
}

// net/http keeps this much of an answer back before anything reaches the connection, by a
// bufio.Writer. Writers of other middleware may keep nothing.
const (
	keptByHTTP1 = 2 << 10
	keptByHTTP2 = 4 << 10
)

// piece is how much is written at once, at most: a client moves by a piece.
const piece = 64 << 10

// begin counts n bytes of the answer.
func (w *work) begin(n int) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if w.limited && w.scope.Err() != nil {
		w.late = true
		if w.written == 0 && w.writing.Load() == 0 && w.Header().Get("Content-Encoding") == "" {
			w.limited = false // the answer begins after the deadline, which has no middle to end
		}
	}
	w.written += int64(n)
}

// keeps reports whether the writer below keeps n bytes more, with what it has kept already.
func (w *work) keeps(n int) bool {
	if n > int(w.room-w.kept) {
		return false
	}
	w.kept += int32(n)
	return true
}

// passes counts n bytes that are written to the writer below, which has a bufio.Writer.
func (w *work) passes(n int, text bool) {
	if w.room == 0 || w.keeps(n) {
		return
	}
	room, rest := int(w.room), n-int(w.room-w.kept)
	switch {
	case text: // goes through the buffer
		rest = (rest-1)%room + 1
	case w.kept == 0 || rest > room: // goes past the buffer
		rest = 0
	}
	w.kept = int32(rest)
}

func (w *work) Write(p []byte) (int, error) {
	w.begin(len(p))
	if w.keeps(len(p)) {
		return w.ResponseWriter.Write(p)
	}
	return send(w, p, false, w.ResponseWriter.Write)
}

func (w *work) WriteString(s string) (int, error) {
	w.begin(len(s))
	if w.keeps(len(s)) {
		return io.WriteString(w.ResponseWriter, s)
	}
	_, text := w.ResponseWriter.(io.StringWriter)
	return send(w, s, text, func(s string) (int, error) { return io.WriteString(w.ResponseWriter, s) })
}

// send writes all of p, while the permit is paused.
func send[T string | []byte](w *work, p T, text bool, write func(T) (int, error)) (n int, err error) {
	w.wait(&w.writing)
	defer w.goOn(&w.writing)
	for len(p) > piece {
		w.passes(piece, text)
		m, err := write(p[:piece])
		n += m
		if err != nil || m < piece {
			return n, err
		}
		p = p[piece:]
		w.writing.Add(oneMove)
	}
	w.passes(len(p), text)
	m, err := write(p)
	return n + m, err
}

// FlushError is what http.ResponseController calls.
func (w *work) FlushError() error {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	if !w.long && (w.stream || streams(w.Header().Get("Content-Type"))) {
		w.isStream()
	}
	w.kept = 0
	w.wait(&w.writing)
	defer w.goOn(&w.writing)
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
		w.leave(nil)
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
	if to, ok := w.ResponseWriter.(io.ReaderFrom); ok {
		return w.readFrom(src, to)
	}
	return io.Copy(struct{ io.Writer }{w.work}, src)
}

func (w http2Work) Flush()                   { w.flush() }
func (w http2Work) CloseNotify() <-chan bool { return w.closeNotify() }
func (w http2Work) Push(target string, opts *http.PushOptions) error {
	if p, ok := w.ResponseWriter.(http.Pusher); ok {
		w.permit.Pause()
		defer w.permit.Resume()
		return p.Push(target, opts)
	}
	return http.ErrNotSupported
}

// readFrom lets to read src. The time in Read of src is the handler's. But the system copies a file
// by itself, and all of that time is the client's.
func (w *work) readFrom(src io.Reader, to io.ReaderFrom) (n int64, err error) {
	w.begin(0)
	defer func() {
		w.written += n
		w.room, w.kept = 0, 0 // how much net/http has kept is not known
	}()
	w.wait(&w.writing)
	defer w.goOn(&w.writing)
	whole, limited := src.(*io.LimitedReader)
	if !limited {
		whole = &io.LimitedReader{R: src, N: math.MaxInt64}
	}
	if !isFile(whole.R) {
		return to.ReadFrom(&source{src, w})
	}
	if limited && whole.N <= piece {
		return to.ReadFrom(src)
	}
	for part := (&io.LimitedReader{R: whole.R}); ; {
		part.N = min(whole.N, piece)
		want := part.N
		m, err := to.ReadFrom(part)
		n += m
		whole.N -= m
		if err != nil || m < want || whole.N <= 0 {
			return n, err
		}
		w.writing.Add(oneMove)
	}
}

// isFile reports whether the system can copy from r without waiting for anybody, as from a file on a
// disk. A pipe waits for its writer, and has no offset.
func isFile(r io.Reader) bool {
	f, ok := r.(interface {
		syscall.Conn
		io.Seeker
	})
	if !ok {
		return false
	}
	_, err := f.Seek(0, io.SeekCurrent)
	return err == nil
}

// source is read by a writer in whose time the permit is paused.
type source struct {
	io.Reader
	work *work
}

func (s *source) Read(p []byte) (int, error) {
	s.work.goOn(&s.work.writing)
	defer s.work.wait(&s.work.writing)
	return s.Reader.Read(p)
}
