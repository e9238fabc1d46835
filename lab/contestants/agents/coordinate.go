package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/spillway-go/spillway/load/agents"
)

// coordinate sends a load from agents that are there, or that it starts.
func coordinate(ctx context.Context, o agents.Order, cfg agents.Config) (*agents.Report, error) {
	if o.Server.URL == "" {
		return local(ctx, o.Agents, cfg)
	}
	token, err := o.Server.Token()
	if err != nil {
		return nil, agents.Input(err)
	}
	bus, err := dial(o.Server, token, "spillway load")
	if err != nil {
		return nil, err
	}
	defer bus.close()
	return agents.Coordinate(ctx, bus, cfg)
}

// local starts a server and agents on this machine for one load.
func local(ctx context.Context, n int, cfg agents.Config) (*agents.Report, error) {
	token := rand.Text()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, Authorization: token, NoLog: true, NoSigs: true})
	if err != nil {
		return nil, err
	}
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(10 * time.Second) {
		return nil, errors.New("the NATS server of this process did not start")
	}
	gone := make(chan error, n)
	var all sync.WaitGroup
	defer all.Wait()
	for range n {
		agent, err := newAgent(s.ClientURL(), token)
		if err != nil {
			return nil, err
		}
		defer agent.end()
		all.Go(func() { gone <- agent.wait() })
	}
	cfg.Gone = gone
	bus, err := dial(agents.Server{URL: s.ClientURL()}, token, "spillway load")
	if err != nil {
		return nil, err
	}
	defer bus.close()
	return agents.Coordinate(ctx, bus, cfg)
}

// child is an agent on this machine.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

func newAgent(url, token string) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &child{cmd: exec.Command(self, "agent", "--parent")}
	for _, v := range os.Environ() { // what is said for agents elsewhere is not said for it
		if !strings.HasPrefix(v, "SPILLWAY_AGENT_") {
			c.cmd.Env = append(c.cmd.Env, v)
		}
	}
	c.cmd.Env = append(c.cmd.Env, agents.Local(url, token)...)
	c.cmd.Stderr = os.Stderr
	if c.stdin, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("an agent was not started: %w", err)
	}
	return c, nil
}

func (c *child) wait() error {
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("an agent ended before the load began: %w", err)
	}
	return errors.New("an agent ended before the load began")
}

// end lets the agent end. One that does not is killed.
func (c *child) end() {
	c.stdin.Close()
	time.AfterFunc(10*time.Second, func() { _ = c.cmd.Process.Kill() })
}
