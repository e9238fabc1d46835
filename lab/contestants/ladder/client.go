package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"sync"
	"sync/atomic"

	"github.com/spillway-go/spillway/lab/contestant"
)

// load does what the servers tell it.
func load(ctx context.Context, job *contestant.Job) (any, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	if err := job.Ready(l.Addr().String()); err != nil {
		return nil, err
	}
	conn, err := l.Accept()
	if err != nil {
		return struct{}{}, closed(err)
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	orders := rpc.NewServer()
	if err := orders.RegisterName("client", new(client)); err != nil {
		return nil, err
	}
	orders.ServeConn(conn)
	return struct{}{}, nil
}

// client sends the one request over and over on keep-alive connections, each
// request after the answer to the one before.
type client struct {
	Order
	lines []*line
}

// Order says where to connect.
type Order struct {
	Addr           string
	Conns, PerConn int // PerConn requests replace a connection; 0: never
}

// line is one connection of the client.
type line struct {
	net.Conn
	in   []byte
	sent int
}

// Open connects and sends the first requests, which warm the server.
func (c *client) Open(o Order, _ *int) error {
	c.Order, c.lines = o, make([]*line, o.Conns)
	for i := range c.lines {
		if err := c.dial(i); err != nil {
			return err
		}
	}
	return c.Send(5*o.Conns, nil)
}

func (c *client) dial(i int) error {
	conn, err := net.Dial("tcp", c.Addr)
	if err != nil {
		return err
	}
	c.lines[i] = &line{Conn: conn, in: make([]byte, 1024)}
	return conn.(*net.TCPConn).SetLinger(0) // leave no port waiting
}

// Close closes every connection.
func (c *client) Close(int, *int) error {
	for _, l := range c.lines {
		l.Close()
	}
	return nil
}

// Send divides n requests among the connections and returns when all are answered.
func (c *client) Send(n int, _ *int) error {
	var users sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(n))
	errs := make([]error, len(c.lines))
	for i := range c.lines {
		users.Go(func() {
			for errs[i] == nil && left.Add(-1) >= 0 {
				if c.PerConn > 0 && c.lines[i].sent >= c.PerConn {
					c.lines[i].Close()
					errs[i] = c.dial(i)
				}
				if errs[i] == nil {
					errs[i] = c.lines[i].ask()
				}
			}
		})
	}
	users.Wait()
	return errors.Join(errs...)
}

var wireBytes, right, end = []byte(wire), []byte("HTTP/1.1 200 "), []byte(wireBody)

// ask sends the request and reads its answer, which ends with the one right body.
func (l *line) ask() error {
	l.sent++
	if _, err := l.Write(wireBytes); err != nil {
		return err
	}
	for n := 0; ; {
		m, err := l.Read(l.in[n:])
		if err != nil {
			return err
		}
		n += m
		switch got := l.in[:n]; {
		case n == len(l.in), n >= len(right) && !bytes.HasPrefix(got, right):
			return fmt.Errorf("a wrong answer: %q", got)
		case bytes.HasSuffix(got, end):
			return nil
		}
	}
}
