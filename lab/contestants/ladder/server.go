package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/ladder"
)

// byConnection serves each connection on a reused goroutine or on one of its own, until
// the listener is closed and the clients have closed the last connection.
func byConnection(l net.Listener, save ladder.Rungs, serve func(net.Conn)) error {
	var serving sync.WaitGroup
	defer serving.Wait()
	waiting := make(chan net.Conn) // for a goroutine that is free
	defer close(waiting)
	for {
		c, err := l.Accept()
		if err != nil {
			return closed(err)
		}
		if !save.Has(ladder.Workers) {
			serving.Go(func() { serve(c) })
			continue
		}
		select {
		case waiting <- c:
		default:
			serving.Go(func() {
				serve(c)
				for c := range waiting {
					serve(c)
				}
			})
		}
	}
}

func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// server is an HTTP/1.1 server whose savings can be switched one by one. It is only
// for this experiment: no TLS, no bodies of requests, no timeouts, one handler.
type server struct {
	save ladder.Rungs
	date date
}

// conn is one connection.
type conn struct {
	*server
	since atomic.Int64 // when the last request arrived; 0: while one is served
	bound io.LimitedReader
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
	ctx context.Context // ends when the client disconnects, without Unwatched
	at  time.Time       // when it was read
}

func (s *server) serve(c net.Conn) {
	defer c.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	k := &conn{server: s, ctx: ctx, bw: bufio.NewWriterSize(c, 4096)}
	k.bound.R = c
	if !s.save.Has(ladder.Unwatched) {
		k.beat = newWatch(c)
		k.bound.R = k.beat
	}
	k.br = bufio.NewReaderSize(&k.bound, maxHead)
	if !s.save.Has(ladder.OneBuffer) {
		k.late = &layers{bw: k.bw}
	}
	for again := true; again; {
		var err error
		if again, err = k.one(); err != nil {
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
			return
		}
	}
}

// one serves one request and reports whether another may follow.
func (k *conn) one() (again bool, err error) {
	k.bound.N = 2 * maxHead
	if _, err := k.br.Peek(1); err != nil {
		return false, nil // the client has left
	}
	k.since.Store(0)
	x := k.x
	if x == nil {
		x = &exchange{}
		if k.save.Has(ladder.State) {
			k.x = x
		}
	}
	x.reset(k)
	if err := k.read(x); err != nil {
		return false, err
	}
	x.at = time.Now()
	defer func() { k.since.Store(x.at.Unix()) }()
	if k.beat == nil {
		k.handle(x)
		return !x.last, k.answer(x)
	}
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	x.ctx = ctx
	k.beat.start(cancel)
	k.handle(x)
	cancel()
	err = k.answer(x)
	k.beat.stop()
	return !x.last, err
}

// read reads a request from the connection.
func (k *conn) read(x *exchange) (err error) {
	parsed, bytes := k.save.Has(ladder.Parser), k.save.Has(ladder.Bytes)
	if parsed {
		err = x.parse(k.br)
	} else {
		err = x.parseStandard(k.br)
	}
	switch {
	case err != nil:
		return err
	case bytes && !parsed:
		x.fromStandard()
	case parsed && !bytes:
		if x.std == nil {
			x.std = &http.Request{}
		}
		if k.save.Has(ladder.State) && x.url == nil {
			x.url = &url.URL{}
		}
		return x.toStandard()
	}
	if bytes {
		return x.locate()
	}
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
