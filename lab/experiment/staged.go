package experiment

import (
	"context"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/results"
)

// Staged are demonstrations that run faulty code and ours, each in a separate process
// that the fault may end.
type Staged struct {
	Role    string // the prefix of each role; the demonstration's id follows
	Program string // that plays them; empty: this one
	Acts    []Act
}

// Act is one demonstration.
type Act struct {
	ID, Title string
	Run       func(context.Context) (results.Demo, error) // in the process; nil if another program plays it
}

// Roles are the roles of the processes that this program plays.
func (s Staged) Roles() map[string]contestant.Role {
	roles := map[string]contestant.Role{}
	for _, a := range s.Acts {
		roles[s.Role+a.ID] = contestant.Func(func(ctx context.Context, _ struct{}) (results.Demo, error) { return a.Run(ctx) })
	}
	return roles
}

// Demos are the demonstrations for a plan.
func (s Staged) Demos() []Demo {
	var out []Demo
	for _, a := range s.Acts {
		out = append(out, Demo{ID: a.ID, Title: a.Title, Expect: time.Second,
			Run: func(ctx context.Context) (results.Demo, error) {
				var demo results.Demo
				_, err := contestant.Run(ctx, contestant.Spec{Program: s.Program, Role: s.Role + a.ID, Input: struct{}{}}, &demo)
				demo.ID, demo.Title = a.ID, a.Title
				return demo, err
			}})
	}
	return out
}
