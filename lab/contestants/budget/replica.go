package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/time/rate"

	"github.com/spillway-go/spillway/clusterlimit"
	plan "github.com/spillway-go/spillway/lab/budget"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// askAgain is how long a client waits that was refused.
const askAgain = time.Millisecond

// gate is a way to be admitted.
type gate struct {
	admit func(ctx context.Context) (end func(), err error)
	lease func() int // how much it may let run now
	close func()
}

// replica runs clients until it is stopped.
func replica(ctx context.Context, in plan.Replica, ready contestant.Ready) (string, error) {
	referee, unshare, err := contestant.Share[plan.Referee](in.Referee)
	if err != nil {
		return "", err
	}
	defer unshare()
	g, err := open(ctx, in)
	if err != nil {
		return "", err
	}
	defer g.close()
	if err := ready("come in"); err != nil {
		return "", err
	}
	var clients sync.WaitGroup
	for range in.Clients {
		clients.Go(func() {
			for !referee.Began() && ctx.Err() == nil {
				time.Sleep(askAgain)
			}
			for ctx.Err() == nil {
				end, err := g.admit(ctx)
				if err != nil {
					time.Sleep(askAgain)
					continue
				}
				referee.Begin(in.Index)
				if in.Work > 0 {
					time.Sleep(in.Work)
				}
				referee.Finish()
				end()
			}
		})
	}
	for ctx.Err() == nil {
		referee.Lease(g.lease())
		time.Sleep(askAgain)
	}
	clients.Wait()
	return "", nil
}

func open(ctx context.Context, in plan.Replica) (*gate, error) {
	switch in.Contestant {
	case plan.Leases:
		return leased(ctx, in, clusterlimit.Keep)
	case plan.Closed:
		return leased(ctx, in, clusterlimit.FailClosed)
	case plan.Each:
		return asking(in)
	case plan.Alone:
		return alone(in)
	}
	return nil, fmt.Errorf("unknown contestant %q", in.Contestant)
}

// local is a limiter of the whole total.
func local(in plan.Replica) (*limiter.Limiter, error) {
	return limiter.New(limiter.Config{Law: limit.NewFixed(in.Slots), QueueSize: -1})
}

// through admits what a rate and a limiter admit.
func through(lim *limiter.Limiter, allow func() error) func(context.Context) (func(), error) {
	return func(ctx context.Context) (func(), error) {
		if err := allow(); err != nil {
			return nil, err
		}
		permit, err := lim.TryAcquire(ctx)
		return permit.Release, err
	}
}

func leased(ctx context.Context, in plan.Replica, away clusterlimit.Away) (*gate, error) {
	lim, err := local(in)
	if err != nil {
		return nil, err
	}
	member, err := clusterlimit.Join(ctx, clusterlimit.Config{
		URL: in.URL, Replica: fmt.Sprint(in.Index), Concurrency: in.Slots, Rate: in.Rate, Lease: in.Lease, Away: away,
	})
	if err != nil {
		return nil, err
	}
	closing := func() { _ = member.Close(context.WithoutCancel(ctx)) }
	if err := member.Bind(lim); err != nil {
		closing()
		return nil, err
	}
	return &gate{
		admit: through(lim, func() error { return member.Allow(1) }),
		lease: func() int { return member.Stats().Slots }, close: closing,
	}, nil
}

func alone(in plan.Replica) (*gate, error) {
	lim, err := local(in)
	if err != nil {
		return nil, err
	}
	allow := func() error { return nil }
	if in.Rate > 0 {
		r := rate.NewLimiter(rate.Limit(in.Rate), max(in.Rate/10, 1))
		allow = func() error {
			if !r.Allow() {
				return errRefused
			}
			return nil
		}
	}
	return &gate{admit: through(lim, allow), lease: func() int { return 0 }, close: lim.Close}, nil
}

var errRefused = errors.New("refused")

func asking(in plan.Replica) (*gate, error) {
	conn, err := nats.Connect(in.URL, nats.MaxReconnects(-1), nats.ReconnectWait(in.Lease/10))
	if err != nil {
		return nil, err
	}
	return &gate{
		admit: func(context.Context) (func(), error) {
			answer, err := conn.Request(subjectAsk, nil, in.Lease)
			switch {
			case err != nil:
				return nil, err
			case string(answer.Data) != admitted:
				return nil, errRefused
			}
			return func() { _ = conn.Publish(subjectEnd, nil) }, nil
		},
		lease: func() int { return 0 }, close: conn.Close,
	}, nil
}
