package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// client sends the one request over and over on keep-alive connections, each
// request after the answer to the one before. It parses the first answer of a
// connection with net/http and expects the others to be as long, with the same
// status and body.
type client struct {
	addr    string
	conns   int
	perConn int // requests after which a connection is replaced; 0: never
}

// line is one connection of the client.
type line struct {
	net.Conn
	in   []byte
	size int // of an answer
	sent int
}

func (c client) dial(ctx context.Context) (*line, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return nil, err
	}
	if c.perConn > 0 {
		_ = conn.(*net.TCPConn).SetLinger(0) // leave no port waiting
	}
	return &line{Conn: conn, in: make([]byte, 4096)}, nil
}

// open makes all connections and sends a request on each.
func (c client) open(ctx context.Context) ([]*line, error) {
	var lines []*line
	for range c.conns {
		l, err := c.dial(ctx)
		if err == nil {
			lines = append(lines, l)
			err = l.ask()
		}
		if err != nil {
			closeAll(lines)
			return nil, err
		}
	}
	return lines, nil
}

func closeAll(lines []*line) {
	for _, l := range lines {
		l.Close()
	}
}

// send divides n requests among the connections and returns when all are answered.
// Connections may have been replaced by then.
func (c client) send(ctx context.Context, lines []*line, n int) error {
	var users sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(n))
	errs := make([]error, len(lines))
	defer context.AfterFunc(ctx, func() { left.Store(0) })()
	for i := range lines {
		users.Go(func() {
			for left.Add(-1) >= 0 && errs[i] == nil {
				if c.perConn > 0 && lines[i].sent >= c.perConn {
					lines[i].Close()
					l, err := c.dial(ctx)
					if err != nil {
						errs[i] = err
						return
					}
					lines[i] = l
				}
				errs[i] = lines[i].ask()
			}
		})
	}
	users.Wait()
	return errors.Join(append(errs, ctx.Err())...)
}

var wireBytes = []byte(wire)

// ask sends the request and reads its answer.
func (l *line) ask() error {
	l.sent++
	if _, err := l.Write(wireBytes); err != nil {
		return err
	}
	if l.size == 0 {
		return l.first()
	}
	for n := 0; n < l.size; {
		m, err := l.Read(l.in[n:])
		if err != nil {
			return err
		}
		n += m
		if n > l.size {
			return fmt.Errorf("an answer of %d bytes or more, want %d: %q", n, l.size, l.in[:n])
		}
	}
	return l.right()
}

func (l *line) right() error {
	if got := l.in[:l.size]; !bytes.HasPrefix(got, []byte("HTTP/1.1 200 ")) || !bytes.HasSuffix(got, []byte(wireBody)) {
		return fmt.Errorf("a wrong answer: %q", got)
	}
	return nil
}

// first reads the first answer, to learn how long it is.
func (l *line) first() error {
	n := 0
	for n < len(l.in) {
		m, err := l.Read(l.in[n:])
		if err != nil {
			return err
		}
		n += m
		end := bytes.Index(l.in[:n], headEnd)
		if end < 0 {
			continue
		}
		res, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(l.in[:n])), nil)
		if err != nil {
			return err
		}
		res.Body.Close()
		want := end + len(headEnd) + int(res.ContentLength)
		if res.ContentLength != int64(len(wireBody)) || res.Header.Get(echoed) == "" || res.Header.Get("Content-Type") != jsonType || n > want {
			return fmt.Errorf("a wrong answer: %q", l.in[:n])
		}
		if n == want {
			l.size = n
			return l.right()
		}
	}
	return fmt.Errorf("the head of an answer is longer than %d bytes", len(l.in))
}
