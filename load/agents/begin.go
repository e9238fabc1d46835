package agents

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ask sends a request to an agent and returns its answer, which must not be a refusal.
func (c *coordinator) ask(ctx context.Context, i int, m message) (message, error) {
	agent := c.agents[i]
	data, err := c.bus.Request(ctx, agentSubject(agent.ID), m.encode())
	if err != nil {
		if ctx.Err() != nil {
			err = errors.New("it does not answer any more")
		}
		return message{}, fmt.Errorf("agent %s: %w", agent.Name, err)
	}
	got, err := decode(data)
	if err != nil {
		return message{}, fmt.Errorf("agent %s: %w", agent.Name, err)
	}
	if got.Answer != nil && got.Answer.Refused != "" {
		return message{}, &Refusal{agent.Name, got.Answer.Refused}
	}
	return got, nil
}

// each calls f for all agents at once, and returns the error of the first of them.
func (c *coordinator) each(ctx context.Context, timeout time.Duration, f func(ctx context.Context, i int) error) error {
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	errs := make([]error, len(c.agents))
	var all sync.WaitGroup
	for i := range c.agents {
		all.Go(func() { errs[i] = f(limited, i) })
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// share gives every agent its share, and returns when all of them have reached the target.
func (c *coordinator) share(ctx context.Context) error {
	parts := split(c.cfg.Load)
	return c.each(ctx, joinTime, func(ctx context.Context, i int) error {
		for _, p := range parts {
			if _, err := c.ask(ctx, i, message{Join: &join{Run: c.run, Index: i, Of: len(c.agents), Part: p}}); err != nil {
				return err
			}
		}
		return nil
	})
}

// align measures how far the agents' clocks are apart. One trip at a time: together they
// would wait for each other.
func (c *coordinator) align(ctx context.Context) error {
	for range roundTrips {
		for i := range c.agents {
			limited, cancel := context.WithTimeout(ctx, answerTime)
			began := c.now()
			m, err := c.ask(limited, i, message{Ping: &empty{}})
			ended := c.now()
			cancel()
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case err != nil:
				return err
			case m.Pong == nil:
				return fmt.Errorf("agent %s: %w", c.agents[i].Name, errMessage)
			}
			c.clocks[i].add(began, ended, time.Duration(m.Pong.Clock))
		}
	}
	return nil
}

// start tells every agent when to begin.
func (c *coordinator) start(ctx context.Context) error {
	c.startAt = c.now() + lead
	for i := range c.clocks {
		c.startAt = max(c.startAt, c.now()+lead+20*c.clocks[i].uncertainty)
	}
	return c.each(ctx, lead+answerTime, func(ctx context.Context, i int) error {
		m, err := c.ask(ctx, i, message{Start: &start{int64(c.clocks[i].there(c.startAt))}})
		if err != nil {
			return err
		}
		if m.Answer == nil {
			return fmt.Errorf("agent %s: %w", c.agents[i].Name, errMessage)
		}
		a := &c.report.Agents[i]
		a.Late, a.ClockOffset, a.Uncertainty = m.Answer.Late, c.clocks[i].offset, c.clocks[i].uncertainty
		return nil
	})
}
