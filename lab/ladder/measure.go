package ladder

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"

	"github.com/spillway-go/spillway/lab/contestant"
)

const (
	roleServer = "ladder-server"
	roleClient = "ladder-client"
)

// Roles are the roles of its contestants.
func Roles() map[string]contestant.Role {
	return map[string]contestant.Role{roleServer: runServer, roleClient: contestant.Func(runClient)}
}

// where is the addresses of a server.
type where struct{ Addr, Control string }

// usage is what a server's process has used so far.
type usage struct {
	CPU            float64 // seconds
	Mallocs, Bytes uint64
}

// runServer serves until it is stopped. For each byte written to the control port it
// sends the usage so far.
func runServer(ctx context.Context, job *contestant.Job) (any, error) {
	var j contestantJob
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
	go func() { failed <- j.serve(ctx, l) }()
	if err := job.Ready(where{l.Addr().String(), control.Addr().String()}); err != nil {
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
		if out.Encode(usage{cpuSeconds(), m.Mallocs, m.TotalAlloc}) != nil {
			return
		}
	}
}

// clientJob is the input of the client: all servers, in turns.
type clientJob struct {
	Servers          []where
	Conns, PerConn   int
	Requests, Rounds int
	Seed             uint64
}

// measured is the cost of the requests to one server, one value for each round.
type measured struct {
	CPU      []float64 // microseconds a request
	Mallocs  []float64 // a request
	Bytes    []float64
	Requests int
	Seconds  float64 // of processor time, all in all
}

// mean is the mean over the rounds, which have the same number of requests. Processor
// time has no long tail, and its mean varies less than its median.
func mean(v []float64) float64 {
	total := 0.0
	for _, x := range v {
		total += x
	}
	return total / float64(max(len(v), 1))
}

// runClient loads all servers in turns, in a new order each round. The first
// round is a warm-up.
func runClient(ctx context.Context, j clientJob) ([]measured, error) {
	out := make([]measured, len(j.Servers))
	rng := rand.New(rand.NewPCG(j.Seed, 7))
	for round := range j.Rounds + 1 {
		for _, i := range rng.Perm(len(j.Servers)) {
			m, err := j.turn(ctx, j.Servers[i])
			if err != nil {
				return nil, fmt.Errorf("server %d: %w", i, err)
			}
			if round > 0 {
				out[i].add(m, j.Requests)
			}
		}
	}
	return out, nil
}

func (m *measured) add(u usage, requests int) {
	n := float64(requests)
	m.CPU = append(m.CPU, u.CPU/n*1e6)
	m.Mallocs = append(m.Mallocs, float64(u.Mallocs)/n)
	m.Bytes = append(m.Bytes, float64(u.Bytes)/n)
	m.Requests += requests
	m.Seconds += u.CPU
}

// turn sends one server its requests. The connections exist before it begins.
func (j clientJob) turn(ctx context.Context, at where) (usage, error) {
	control, err := (&net.Dialer{}).DialContext(ctx, "tcp", at.Control)
	if err != nil {
		return usage{}, err
	}
	defer control.Close()
	defer context.AfterFunc(ctx, func() { control.Close() })()
	c := client{at.Addr, j.Conns, j.PerConn}
	lines, err := c.open(ctx)
	if err != nil {
		return usage{}, err
	}
	defer func() { closeAll(lines) }()
	if err := c.send(ctx, lines, 4*j.Conns); err != nil {
		return usage{}, err
	}
	answers := json.NewDecoder(control)
	var from, to usage
	if err := ask(control, answers, &from); err != nil {
		return usage{}, err
	}
	if err := c.send(ctx, lines, j.Requests); err != nil {
		return usage{}, err
	}
	if err := ask(control, answers, &to); err != nil {
		return usage{}, err
	}
	return usage{to.CPU - from.CPU, to.Mallocs - from.Mallocs, to.Bytes - from.Bytes}, nil
}

func ask(control net.Conn, answers *json.Decoder, u *usage) error {
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
