package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	plan "github.com/spillway-go/spillway/lab/budget"
	"github.com/spillway-go/spillway/lab/contestant"
)

// What is asked of the counter, and its answers.
const (
	subjectAsk  = "budget.ask"
	subjectEnd  = "budget.end"
	admitted    = "yes"
	notAdmitted = "no"
)

// engine is a NATS server with a counter for those that ask for each admission.
func engine(ctx context.Context, in plan.Replica, ready contestant.Ready) (_ string, err error) {
	folder, err := os.MkdirTemp("", "spillway-engine-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: folder, NoLog: true, NoSigs: true})
	if err != nil {
		return "", err
	}
	s.Start()
	defer s.WaitForShutdown()
	defer s.Shutdown()
	if !s.ReadyForConnections(10 * time.Second) {
		return "", errors.New("the engine does not start")
	}
	conn, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	c := counter{slots: in.Slots, rate: float64(in.Rate), at: time.Now()}
	if _, err := conn.Subscribe(subjectAsk, c.ask); err != nil {
		return "", err
	}
	if _, err := conn.Subscribe(subjectEnd, c.end); err != nil {
		return "", err
	}
	if err := errors.Join(conn.Flush(), ready(s.ClientURL())); err != nil {
		return "", err
	}
	<-ctx.Done()
	return "", nil
}

// counter admits for all.
type counter struct {
	mu      sync.Mutex
	running int
	slots   int
	rate    float64 // 0: any
	tokens  float64
	at      time.Time
}

func (c *counter) ask(m *nats.Msg) {
	c.mu.Lock()
	now := time.Now()
	c.tokens = min(c.tokens+c.rate*now.Sub(c.at).Seconds(), c.rate/10)
	c.at = now
	answer := notAdmitted
	if c.running < c.slots && (c.rate == 0 || c.tokens >= 1) {
		c.running++
		c.tokens--
		answer = admitted
	}
	c.mu.Unlock()
	_ = m.Respond([]byte(answer))
}

func (c *counter) end(*nats.Msg) {
	c.mu.Lock()
	c.running--
	c.mu.Unlock()
}
