package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ladder"
	"github.com/spillway-go/spillway/lab/usage"
)

// spent is what a server's process has used so far.
type spent struct {
	CPU            float64 // seconds
	Mallocs, Bytes uint64
}

// runServer serves until it is stopped. For each byte written to the control port it
// tells what it used so far.
func runServer(ctx context.Context, job *contestant.Job) (any, error) {
	var j ladder.Server
	if err := job.Input(&j); err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	control, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer control.Close()
	go func() { _ = spawned(control, tellUsage) }()
	failed := make(chan error, 1)
	go func() { failed <- serve(ctx, j, l) }()
	if err := job.Ready(ladder.Where{Addr: l.Addr().String(), Control: control.Addr().String()}); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done(): // connections that are open end with the process
		return struct{}{}, nil
	case err := <-failed:
		return struct{}{}, err
	}
}

func tellUsage(c net.Conn) {
	defer c.Close()
	var ask [1]byte
	for out := json.NewEncoder(c); ; {
		if _, err := c.Read(ask[:]); err != nil {
			return
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		if out.Encode(spent{usage.CPU().Seconds(), m.Mallocs, m.TotalAlloc}) != nil {
			return
		}
	}
}

// runClient loads all servers in turns, in a new order each round. The first
// round is a warm-up.
func runClient(ctx context.Context, j ladder.ClientJob) ([]ladder.Measured, error) {
	out := make([]ladder.Measured, len(j.Servers))
	rng := rand.New(rand.NewPCG(j.Seed, 7))
	for round := range j.Rounds + 1 {
		for _, i := range rng.Perm(len(j.Servers)) {
			m, err := turn(ctx, j, j.Servers[i])
			if err != nil {
				return nil, fmt.Errorf("server %d: %w", i, err)
			}
			if round > 0 {
				add(&out[i], m, j.Requests)
			}
		}
	}
	return out, nil
}

func add(m *ladder.Measured, u spent, requests int) {
	n := float64(requests)
	m.CPU = append(m.CPU, u.CPU/n*1e6)
	m.Mallocs = append(m.Mallocs, float64(u.Mallocs)/n)
	m.Bytes = append(m.Bytes, float64(u.Bytes)/n)
	m.Requests += requests
	m.Seconds += u.CPU
}

// turn sends one server its requests. The connections exist before it begins.
func turn(ctx context.Context, j ladder.ClientJob, at ladder.Where) (spent, error) {
	control, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.Control)
	if err != nil {
		return spent{}, err
	}
	defer control.Close()
	defer context.AfterFunc(ctx, func() { control.Close() })()
	c := client{at.Addr, j.Conns, j.PerConn}
	lines, err := c.open(ctx)
	if err != nil {
		return spent{}, err
	}
	defer func() { closeAll(lines) }()
	if err := c.send(ctx, lines, 4*j.Conns); err != nil {
		return spent{}, err
	}
	answers := json.NewDecoder(control)
	var from, to spent
	if err := ask(control, answers, &from); err != nil {
		return spent{}, err
	}
	if err := c.send(ctx, lines, j.Requests); err != nil {
		return spent{}, err
	}
	if err := ask(control, answers, &to); err != nil {
		return spent{}, err
	}
	return spent{to.CPU - from.CPU, to.Mallocs - from.Mallocs, to.Bytes - from.Bytes}, nil
}

func ask(control net.Conn, answers *json.Decoder, u *spent) error {
	if _, err := control.Write([]byte{'?'}); err != nil {
		return err
	}
	if err := answers.Decode(u); err != nil {
		return err
	}
	if u.CPU == 0 {
		return errors.New("this system does not report a process's processor time")
	}
	return nil
}
