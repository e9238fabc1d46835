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
	if err == nil {
		err = rpc.RegisterName("client", new(client))
	}
	if err != nil {
		return nil, err
	}
	rpc.ServeConn(conn)
	return struct{}{}, nil
}

// Order says where to connect.
type Order struct {
	Addr           string
	Conns, PerConn int // PerConn requests replace a connection; 0: never
}

// client sends the one request over and over on keep-alive connections, each
// request after the answer to the one before.
type client struct {
	Order
	conns []net.Conn
}

// Open connects and sends the first requests, which warm the server.
func (c *client) Open(o Order, _ *int) (err error) {
	c.Order, c.conns = o, make([]net.Conn, o.Conns)
	for i := range c.conns {
		if c.conns[i], err = c.dial(); err != nil {
			return err
		}
	}
	return c.Send(5*o.Conns, nil)
}

func (c *client) dial() (net.Conn, error) {
	conn, err := net.Dial("tcp", c.Addr)
	if err != nil {
		return nil, err
	}
	return conn, conn.(*net.TCPConn).SetLinger(0) // leave no port waiting
}

// Close closes every connection.
func (c *client) Close(int, *int) error {
	for _, conn := range c.conns {
		conn.Close()
	}
	return nil
}

// Send divides n requests among the connections and returns when all are answered.
func (c *client) Send(n int, _ *int) error {
	var users sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(n))
	errs := make([]error, len(c.conns))
	for i := range c.conns {
		users.Go(func() {
			in := make([]byte, 1024)
			for sent := 0; errs[i] == nil && left.Add(-1) >= 0; sent++ {
				if c.PerConn > 0 && sent%c.PerConn == 0 {
					c.conns[i].Close()
					if c.conns[i], errs[i] = c.dial(); errs[i] != nil {
						return
					}
				}
				errs[i] = ask(c.conns[i], in)
			}
		})
	}
	users.Wait()
	return errors.Join(errs...)
}

var asked, right, end = []byte(wire), []byte("HTTP/1.1 200 "), []byte(wireBody)

// ask sends the request and reads its answer, which ends with the one right body.
func ask(conn net.Conn, in []byte) error {
	if _, err := conn.Write(asked); err != nil {
		return err
	}
	for n := 0; ; {
		m, err := conn.Read(in[n:])
		if err != nil {
			return err
		}
		n += m
		switch got := in[:n]; {
		case n == len(in), n >= len(right) && !bytes.HasPrefix(got, right):
			return fmt.Errorf("a wrong answer: %q", got)
		case bytes.HasSuffix(got, end):
			return nil
		}
	}
}
