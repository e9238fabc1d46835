package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"

	"github.com/spillway-go/spillway/lab/routes"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/lab/usage"
)

// measure plays a scenario. All players are in this one process, also in the parallel
// scenario and for the collector's pauses: only one works at a time, and a collection
// before and after each turn keeps its garbage apart, so that its processor time and its
// pauses are its own; heap and roots are the same for all.
func measure(ctx context.Context, j routes.Job) (routes.Measured, error) {
	out := routes.Measured{Build: thisBuild}
	if usage.CPU() == 0 {
		return out, errors.New("this system does not report a process's processor time")
	}
	lanes := 1 // goroutines that send requests
	if j.Scenario == routes.Parallel {
		lanes = runtime.GOMAXPROCS(0)
	}
	players := make([]turns.Player, len(j.Players))
	for i, name := range j.Players {
		h, err := start(name)
		if err != nil {
			return out, err
		}
		players[i] = player(name, h, j, lanes)
	}
	var err error
	out.Readings, err = turns.Play(ctx, turns.Config{Rounds: j.Rounds, Time: j.Time, Seed: j.Seed, Least: lanes, Clock: usage.CPU}, players)
	return out, err
}

// warm is how many requests fill a contestant's pools again before each turn: the
// collections before the turns of the others have emptied them.
const warm = 8

func player(name string, h handlers, j routes.Job, lanes int) turns.Player {
	senders, wrong := make([]harness, lanes), make([]string, lanes)
	for i := range senders {
		senders[i] = newHarness(h, requests[j.Scenario], j.Published)
	}
	want := requests[j.Scenario].Status
	if _, ok := harnesses[name]; ok {
		want = http.StatusOK // of nobody
	}
	repeat := func(i, n int) {
		var status int
		var body []byte
		for range n {
			status, body = senders[i]()
		}
		if status != want {
			wrong[i] = fmt.Sprintf("answered %d, want %d: %s", status, want, body)
		}
	}
	send := func(n int) {
		var others sync.WaitGroup
		for i := 1; i < lanes; i++ {
			others.Go(func() { repeat(i, share(n, i, lanes)) })
		}
		repeat(0, share(n, 0, lanes))
		others.Wait()
	}
	return turns.Player{
		Name:  name,
		Ready: func(int) error { send(warm * lanes); return nil },
		Block: send,
		Done: func() error {
			if why := cmp.Or(wrong...); why != "" {
				return errors.New(why)
			}
			return nil
		},
	}
}

// share is the i-th of so many parts of n.
func share(n, i, parts int) int { return n*(i+1)/parts - n*i/parts }
