package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/spillway-go/spillway/lab/routes"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/lab/usage"
)

// measure plays the matches of a table. All contestants are in this one process, also
// those of the parallel scenario and of the collector's pauses: only one works at a
// time, and a collection before and after each block keeps its garbage apart, so that
// its processor time and its pauses are its own; heap and roots are the same for all.
func measure(ctx context.Context, j routes.Job) (routes.Measured, error) {
	out := routes.Measured{Build: thisBuild}
	if usage.CPU() == 0 {
		return out, errors.New("this system does not report a process's processor time")
	}
	started := map[routes.Entry]handlers{}
	for i, m := range j.Matches {
		var players []turns.Player
		for _, e := range m.Entries {
			h, ok := started[e]
			if !ok {
				var err error
				if h, err = start(j.Table, e.Name); err != nil {
					return out, fmt.Errorf("%s: %w", e.Name, err)
				}
				started[e] = h
			}
			players = append(players, player(e.Name, h, m.Scenario, m.Published))
		}
		config := turns.Config{Rounds: j.Rounds, Time: j.Time, Seed: j.Seed + uint64(i), Least: lanes(m.Scenario), Clock: usage.CPU}
		readings, err := turns.Play(ctx, config, players)
		if err != nil {
			return out, fmt.Errorf("%s: %w", m.Scenario, err)
		}
		out.Readings = append(out.Readings, readings)
	}
	return out, nil
}

// lanes is how many goroutines send a scenario's requests.
func lanes(scenario string) int {
	if scenario == routes.Parallel {
		return runtime.GOMAXPROCS(0)
	}
	return 1
}

// warm is how many requests fill a contestant's pools again before each block: the
// collections before the blocks of the others have emptied them.
const warm = 8

func player(name string, h handlers, scenario string, published bool) turns.Player {
	senders := make([]harness, lanes(scenario))
	for i := range senders {
		senders[i] = newHarness(h, requests[scenario], published)
	}
	send := func(n int) {
		var others sync.WaitGroup
		for i, s := range senders[1:] {
			others.Go(func() { repeat(s, share(n, i+1, len(senders))) })
		}
		repeat(senders[0], share(n, 0, len(senders)))
		others.Wait()
	}
	return turns.Player{
		Name:  name,
		Ready: func(int) error { send(warm * len(senders)); return nil },
		Block: send,
		Done: func() error {
			for _, s := range senders {
				if want := requests[scenario].Status; name != routes.Nothing && s.status() != want {
					return fmt.Errorf("answered %d, want %d: %s", s.status(), want, s.body())
				}
			}
			return nil
		},
	}
}

func repeat(s harness, n int) {
	for range n {
		s.send()
	}
}

// share is the i-th of so many parts of n.
func share(n, i, parts int) int { return n*(i+1)/parts - n*i/parts }
