package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/ladder"
)

// serveByConnection serves each connection on a reused goroutine or on one of its own, until
// the listener is closed and the clients have closed the last connection.
func serveByConnection(l net.Listener, save ladder.Rungs) error {
	var serving sync.WaitGroup
	defer serving.Wait()
	more := make(chan net.Conn) // for a goroutine that is free
	defer close(more)
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		select {
		case more <- c: // nobody receives if goroutines are not reused
			continue
		default:
		}
		serving.Go(func() {
			for ok := true; ok; c, ok = <-more {
				serveSmall(save, c)
				if !save.Has(ladder.Workers) {
					return
				}
			}
		})
	}
}

// conn is one connection of an HTTP/1.1 server whose savings can be switched one by one. It
// is only for this experiment: no TLS, no bodies of requests, no timeouts, one handler.
type conn struct {
	save   ladder.Rungs
	bound  io.LimitedReader
	br     *bufio.Reader
	bw     *bufio.Writer
	beat   *watch  // without Unwatched
	late   *layers // without OneBuffer
	ctx    context.Context
	x      *exchange // with State: the same for every request
	second int64     // of the date
	date   []byte    // with OneBuffer
}

// exchange is a request and its answer, which State reuses.
type exchange struct {
	request
	response
	at time.Time // when it was read
}

func serveSmall(save ladder.Rungs, c net.Conn) {
	defer c.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	k := &conn{save: save, ctx: ctx, bw: bufio.NewWriterSize(c, 4096)}
	k.bound.R = c
	if !save.Has(ladder.Unwatched) {
		k.beat = newWatch(c)
		k.bound.R = k.beat
	}
	k.br = bufio.NewReaderSize(&k.bound, maxHead)
	if !save.Has(ladder.OneBuffer) {
		k.late = &layers{bw: k.bw}
	}
	var err error
	for err == nil {
		err = k.one()
	}
	if err != errDone {
		_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
	}
}

// one serves one request.
func (k *conn) one() error {
	k.bound.N = 2 * maxHead
	if _, err := k.br.Peek(1); err != nil {
		return errDone
	}
	if k.x == nil || !k.save.Has(ladder.State) {
		k.x = &exchange{}
	}
	x := k.x
	x.reset(k)
	if err := k.read(x); err != nil {
		return err
	}
	x.at = time.Now()
	if k.beat != nil {
		_, cancel := context.WithCancel(k.ctx) // the client's leaving ends it
		defer cancel()
		k.beat.start(cancel)
		defer k.beat.stop()
	}
	if k.save.Has(ladder.Bytes) {
		answerBytes(&x.request, &x.response)
	} else {
		if x.header == nil {
			x.header = make(http.Header)
		}
		answerStrings(&x.response, x.std)
	}
	if err := k.answer(x); err != nil || x.last {
		return errDone
	}
	return nil
}

// read reads a request from the connection.
func (k *conn) read(x *exchange) (err error) {
	x.hosts, x.bad, x.last = 0, false, false
	parsed := k.save.Has(ladder.Parser)
	if parsed {
		err = x.parse(k.br)
	} else {
		err = x.parseStandard(k.br)
	}
	switch {
	case err != nil:
		return err
	case x.bad || x.hosts != 1:
		return errMalformed
	case k.save.Has(ladder.Bytes):
		return x.toBytes(parsed)
	case parsed:
		return x.toStandard()
	}
	return nil
}

// watch reads a byte ahead while a handler runs, so that its context ends when
// the client disconnects, and sets every deadline that net/http sets for a request.
type watch struct {
	net.Conn
	gone context.CancelFunc

	mu      sync.Mutex
	ended   sync.Cond
	reading bool
	stopped bool
	taken   bool // never
	ahead   bool // next holds a byte
	next    [1]byte
}

func newWatch(c net.Conn) *watch {
	w := &watch{Conn: c}
	w.ended.L = &w.mu
	return w
}

var never, past = time.Time{}, time.Unix(1, 0)

// start begins to read ahead. gone is called if the client disconnects.
func (w *watch) start(gone context.CancelFunc) {
	_ = w.SetReadDeadline(never) // of the whole request
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = gone
	if w.ahead {
		return
	}
	w.reading = true
	_ = w.SetReadDeadline(never) // of the background read
	go w.read()
}

func (w *watch) read() {
	n, err := w.Conn.Read(w.next[:])
	w.mu.Lock()
	w.ahead = n == 1
	if err != nil && !w.stopped {
		w.gone()
	}
	w.stopped, w.reading = false, false
	w.mu.Unlock()
	w.ended.Broadcast()
}

// stop ends the reading ahead, whose byte is read next, and sets what net/http sets
// between two requests.
func (w *watch) stop() {
	w.mu.Lock()
	if w.reading {
		w.stopped = true
		_ = w.SetReadDeadline(past)
		for w.reading {
			w.ended.Wait()
		}
		_ = w.SetReadDeadline(never)
	}
	w.mu.Unlock()
	_ = w.SetWriteDeadline(never)
	_ = w.SetReadDeadline(never) // of the idle connection
	_ = w.SetReadDeadline(never) // of the next head
}

// Read gives the byte that was read ahead first.
func (w *watch) Read(b []byte) (int, error) {
	w.mu.Lock()
	ahead := w.ahead && len(b) > 0
	if ahead {
		w.ahead, b[0] = false, w.next[0]
	}
	w.mu.Unlock()
	if ahead {
		return 1, nil
	}
	return w.Conn.Read(b)
}

// hijacked is what net/http asks before each write of a handler; without a watch it is false.
func (w *watch) hijacked() bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.taken
}
