// Command ladder has the servers of experiment G7 and the client that loads them:
// fasthttp, net/http and a small server whose savings are switched one by one. The lab
// builds and starts it.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ladder"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/load/usage"
)

var roles = map[string]contestant.Role{ladder.RolePlay: contestant.Func(play), ladder.RoleClient: contestant.Server(load)}

func main() { contestant.Program(roles) }

// play serves in turns and measures the processor time of this process. The client is
// another one.
func play(ctx context.Context, g ladder.Game) ([][]turns.Reading, error) {
	client, err := rpc.Dial("tcp", g.Client)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	defer context.AfterFunc(ctx, func() { client.Close() })()
	var players []turns.Player
	for _, s := range g.Servers {
		players = append(players, player(s, Order{Conns: g.Connections}, client.Call))
	}
	g.Clock = usage.CPU
	return turns.Play(ctx, g.Config, players)
}

// player is a server that is there only while it has its turn.
func player(s ladder.Server, o Order, call func(method string, arg, reply any) error) turns.Player {
	var l net.Listener
	var served chan error
	var wrong error
	return turns.Player{
		Name: s.Kind + " " + s.Save.String(),
		Ready: func(int) (err error) {
			if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
				return err
			}
			served = make(chan error, 1)
			go func() { served <- serve(s, l) }()
			o.Addr, o.Asks = l.Addr().String(), s.Asks
			return call("client.Open", o, nil)
		},
		Block: func(n int) { wrong = call("client.Send", n, nil) },
		Done: func() error {
			wrong = errors.Join(wrong, call("client.Close", 0, nil), l.Close())
			if err := <-served; !errors.Is(err, net.ErrClosed) {
				wrong = errors.Join(wrong, err) // fasthttp has none
			}
			return wrong
		},
	}
}

// load does what the servers tell it.
func load(ctx context.Context, _ any, ready contestant.Ready) (any, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	if err := errors.Join(rpc.RegisterName("client", new(client)), ready(l.Addr().String())); err != nil {
		return nil, err
	}
	rpc.Accept(l) // until the context ends
	return struct{}{}, nil
}

// Order says where to connect.
type Order struct {
	Addr  string
	Conns int
	Asks  string
}

// client sends one request over and over on keep-alive connections, each
// request after the answer to the one before.
type client struct {
	Order
	conns []net.Conn
}

// Open connects and sends the first requests, which warm the server.
func (c *client) Open(o Order, _ *int) error {
	c.Order, c.conns = o, make([]net.Conn, o.Conns)
	for i := range c.conns {
		conn, err := net.Dial("tcp", c.Addr)
		if err != nil {
			return err
		}
		c.conns[i] = conn
		if err := conn.(*net.TCPConn).SetLinger(0); err != nil { // leave no port waiting
			return err
		}
	}
	return c.Send(5*o.Conns, nil)
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
	var users errgroup.Group
	var left atomic.Int64
	left.Store(int64(n))
	for _, conn := range c.conns {
		users.Go(func() (err error) {
			in := make([]byte, 1024)
			for err == nil && left.Add(-1) >= 0 {
				err = ask(conn, asked[c.Asks], in)
			}
			return err
		})
	}
	return users.Wait()
}

// asked are the requests, by the name that a server gives them.
var asked = map[string][]byte{"": []byte(wire), ladder.HostAlone: []byte(wireHost), ladder.Posted: []byte(wirePost)}

var right, end = []byte("HTTP/1.1 200 "), []byte(wireBody)

// ask sends the request and reads its answer, which ends with the one right body.
func ask(conn net.Conn, request, in []byte) error {
	if _, err := conn.Write(request); err != nil {
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
