package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/ladder"
)

// server is an HTTP/1.1 server whose savings can be switched one by one. It is only
// for this experiment: no TLS, no chunked bodies (a body with a length is read and
// dropped), no timeouts, one handler.
type server struct {
	save ladder.Rungs
	date date
}

// listen serves until the listener is closed, and returns when the clients have
// closed the last connection.
func (s *server) listen(l net.Listener) error {
	if s.save.Has(ladder.Workers) {
		return pooled(l, ladder.MaxConns, s.serve)
	}
	return spawned(l, s.serve)
}

// spawned serves each connection on a goroutine of its own.
func spawned(l net.Listener, serve func(net.Conn)) error {
	var open sync.WaitGroup
	defer open.Wait()
	for {
		c, err := l.Accept()
		if err != nil {
			return closed(err)
		}
		open.Go(func() { serve(c) })
	}
}

// pooled serves connections on at most n goroutines, which are reused.
func pooled(l net.Listener, n int, serve func(net.Conn)) error {
	var workers sync.WaitGroup
	defer workers.Wait()
	conns := make(chan net.Conn)
	defer close(conns)
	for started := 0; ; {
		c, err := l.Accept()
		if err != nil {
			return closed(err)
		}
		select {
		case conns <- c:
			continue
		default:
		}
		if started == n {
			conns <- c
			continue
		}
		started++
		workers.Go(func() {
			serve(c)
			for c := range conns {
				serve(c)
			}
		})
	}
}

func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// conn is one connection.
type conn struct {
	*server
	since atomic.Int64 // when the last request arrived; 0: while one is served
	src   source
	br    *bufio.Reader
	bw    *bufio.Writer
	beat  *watch  // without Unwatched
	late  *layers // without OneBuffer
	ctx   context.Context
	x     *exchange // with State: the same for every request
}

// exchange is a request and its answer, which State reuses.
type exchange struct {
	request
	response
	url *url.URL        // with the API of strings
	ctx context.Context // ends when the client disconnects, without Unwatched
	at  time.Time       // when it was read
}

func (s *server) serve(c net.Conn) {
	defer c.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	k := &conn{server: s, ctx: ctx}
	k.src = source{r: c, left: -1}
	if !s.save.Has(ladder.Unwatched) {
		k.beat = newWatch(c)
		k.src.r = k.beat
	}
	k.br, k.bw = bufio.NewReaderSize(&k.src, maxHead), bufio.NewWriterSize(c, 4096)
	if !s.save.Has(ladder.OneBuffer) {
		k.late = &layers{bw: k.bw}
	}
	for {
		again, err := k.one()
		if err == nil && again {
			continue
		}
		if problem, ok := errors.AsType[*fault](err); ok {
			refuse(c, problem)
		}
		return
	}
}

// refuse tells the client why. The connection ends after it.
func refuse(c net.Conn, f *fault) {
	fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n\r\n%s",
		f.status, http.StatusText(f.status), len(f.text), f.text)
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
}

// one serves one request and reports whether another may follow.
func (k *conn) one() (again bool, err error) {
	if _, err := k.br.Peek(1); err != nil {
		return false, err
	}
	k.since.Store(0)
	x := k.x
	switch {
	case x == nil:
		x = &exchange{}
		if k.save.Has(ladder.State) {
			k.x = x
		}
	default:
		x.response.reset()
	}
	x.response.conn = k
	if err := k.read(x); err != nil {
		return false, err
	}
	x.at = time.Now()
	defer func() { k.since.Store(x.at.Unix()) }()
	if k.beat == nil {
		k.handle(x)
		return k.answer(x)
	}
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	x.ctx = ctx
	k.beat.start(cancel)
	k.handle(x)
	cancel()
	again, err = k.answer(x)
	k.beat.stop()
	k.beat.idle()
	return again, err
}

// read reads a request from the connection, its body included.
func (k *conn) read(x *exchange) error {
	var err error
	if k.save.Has(ladder.Parser) {
		err = x.parse(k.br)
	} else {
		k.src.left = maxHead - k.br.Buffered()
		err = x.parseStandard(k.br)
		k.src.left = -1
		if _, isFault := err.(*fault); err != nil && !isFault && k.src.err == nil {
			err = errField // net/http could not read it
		}
		if k.src.past { // whatever error net/http returned
			err = errHeadLarge
		}
	}
	if err != nil {
		return err
	}
	if _, err := k.br.Discard(int(x.frame.length)); err != nil {
		return err
	}
	switch {
	case k.save.Has(ladder.Bytes):
		return x.toBytes(k.save.Has(ladder.Parser))
	case k.save.Has(ladder.Parser):
		if x.std == nil {
			x.std = &http.Request{}
		}
		if k.save.Has(ladder.State) && x.url == nil {
			x.url = &url.URL{}
		}
		x.toStrings()
		return x.finish(x.url)
	}
	x.std.Body = http.NoBody
	return nil
}

func (k *conn) handle(x *exchange) {
	if k.save.Has(ladder.Bytes) {
		answerBytes(&x.request, &x.response)
		return
	}
	if x.header == nil {
		x.header = make(http.Header)
	}
	answerStrings(&x.response, x.std)
}

// source reads from a connection, with a bound while a head is read by lines.
type source struct {
	r    interface{ Read([]byte) (int, error) }
	left int  // -1: no bound
	past bool // more than the bound was asked for
	err  error
}

func (s *source) Read(b []byte) (int, error) {
	switch {
	case s.left < 0:
		n, err := s.r.Read(b)
		s.err = err
		return n, err
	case s.left == 0:
		s.past = true
		return 0, errHeadLarge
	}
	n, err := s.r.Read(b[:min(len(b), s.left)])
	s.left -= n
	s.err = err
	return n, err
}
