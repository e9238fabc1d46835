package main

import (
	"context"
	"errors"
	"net"
	"net/rpc"

	"github.com/spillway-go/spillway/lab/ladder"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/lab/usage"
)

// play serves in turns and measures the processor time of this process. The client is
// another one.
func play(ctx context.Context, g ladder.Game) ([][]turns.Reading, error) {
	if usage.CPU() == 0 {
		return nil, errors.New("this system does not report a process's processor time")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", g.Client)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	client := rpc.NewClient(conn)
	defer client.Close()
	do := func(method string, arg any) error { return client.Call("client."+method, arg, nil) }
	var players []turns.Player
	for _, s := range g.Servers {
		players = append(players, player(s, Order{"", g.Connections, g.PerConn}, do))
	}
	return turns.Play(ctx, turns.Config{Rounds: g.Rounds, Time: g.Time, Least: g.Connections, Seed: g.Seed, Clock: usage.CPU}, players)
}

// player is a server that is there only while it has its turn.
func player(s ladder.Server, o Order, client func(method string, arg any) error) turns.Player {
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
			o.Addr = l.Addr().String()
			return client("Open", o)
		},
		Block: func(n int) { wrong = client("Send", n) },
		Done:  func() error { return errors.Join(wrong, client("Close", 0), l.Close(), <-served) },
	}
}
