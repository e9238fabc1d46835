// Package stories is the experiment with five ways in which a Go service goes down and
// stays down. Each is told twice, side by side: by a plain service, and by the same one
// behind Spillway.
package stories

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
)

// Experiment is experiment W.
var Experiment = experiment.Declare(family, help, Config.plan, map[string]contestant.Role{roleService: contestant.Server(serve)})

const roleService = "story-service"

const help = `Five war stories. In each a small HTTP service, in a process of its own, is told as a plain net/http service (unprotected) and behind Spillway with hardly any configuration (protected).

metastable: at half of its capacity the database becomes five times slower for ten seconds. The clients wait a second and try three times. Does the service come back by itself? The protected one has admissionhttp in front of it, and its clients have admissionhttp/client with a retry budget.

memory: requests hold 2 MiB each, and twice as many arrive as GOMEMLIMIT has room for. How much of the processor time goes to the garbage collector, and does the process live? The protected one has limiter.Memory.

herd: a service that lives from its cache is restarted, and 200 clients come back at once. How long does it take until 90 % of the requests are answered? Protected as in metastable.

query: one kind of query, a tenth of all, that took 100 ms takes 10 seconds (30 with --full). It shares ten connections with the others. How many goroutines pile up, and are the critical requests answered? The protected service gives it half of the connections, and has a limiter in front of the rest.

fanout: every request asks 20 sources, each of which sends half a megabyte. What is the peak of the memory? The protected service runs eight requests at a time, and uses fanout.Map with a budget of 64 goroutines for all of them.

The stories metastable, herd and query mostly wait, and are told at the same time. --quick --repeats 1 shows each of them once.`

// How a story is told.
const (
	unprotected = "unprotected" // a plain Go service
	protected   = "protected"   // the same behind Spillway
)

// Config is what a user may set.
type Config struct {
	Part    []string      `placeholder:"NAME" help:"Only these stories: metastable, memory, herd, query, fanout. Goals about the others stay open."`
	WarmUp  time.Duration `group:"Size" default:"3s" quick:"2s" above:"0s" help:"How long all is well, in metastable and query."`
	Trigger time.Duration `group:"Size" default:"10s" quick:"3s" above:"0s" help:"How long the database is slow in metastable."`
	After   time.Duration `group:"Size" default:"30s" quick:"8s" full:"60s" above:"0s" help:"How long metastable goes on after that."`
	Query   time.Duration `group:"Size" default:"10s" quick:"2s" full:"30s" above:"0s" help:"What the slow query takes in query, and how long callers wait."`
	Time    time.Duration `group:"Size" default:"5s" quick:"2s" full:"15s" above:"0s" help:"How long memory and fanout are, and half of herd."`
	service.Flags
}

// story is one way in which a service goes down.
type story struct {
	name, load string
	waits      bool // it takes little processor time, so that such stories are told at the same time

	service func(job, *front) (http.Handler, error)               // what its process serves
	crowd   func(Config) manners                                  // how its clients behave
	sends   func(Config) service.Load                             // what they send
	figures func(Config, *crowd, *results.Run) map[string]float64 // of a run
	spec    func(*contestant.Spec)                                // changes how the process is started; may be nil
	expect  func(c Config, pattern string) time.Duration          // how long a run takes
}

var stories = []story{metastable, memory, herd, query, fanOut}

func find(name string) (story, error) {
	i := slices.IndexFunc(stories, func(s story) bool { return s.name == name })
	if i < 0 {
		return story{}, fmt.Errorf("unknown story %q", name)
	}
	return stories[i], nil
}

func (s story) key(pattern string) ledger.Key {
	return ledger.Key{Setup: s.name, Load: s.load, Pattern: pattern}
}

func (c Config) plan() (p experiment.Plan, err error) {
	var names []string
	for _, s := range stories {
		names = append(names, s.name)
		if !experiment.Wanted(c.Part, s.name) {
			continue
		}
		beside, uses := "", 0.
		if s.waits {
			beside, uses = "stories that wait", .1
		}
		for _, pattern := range []string{unprotected, protected} {
			k := s.key(pattern)
			p.Cells = append(p.Cells, experiment.Cell{
				Setup: k.Setup, Load: k.Load, Pattern: pattern, Beside: beside, Uses: uses, Expect: s.expect(c, pattern),
				Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
					measure := func() (results.Run, error) {
						return s.measure(ctx, job{Story: s.name, Protected: pattern == protected, Config: c, Seed: t.Seed})
					}
					if s.waits {
						return c.InTime(measure)
					}
					return measure() // the service takes the processors from its clients: that is the story
				},
			})
		}
	}
	return p, cmp.Or(c.Work.Check(), experiment.Known("part", c.Part, names))
}

// measure tells the story once.
func (s story) measure(ctx context.Context, j job) (results.Run, error) {
	ctx, end := context.WithCancel(ctx)
	defer end() // of the service, too, if the run fails
	spec := j.Spec("", roleService, j)
	if s.spec != nil {
		s.spec(&spec)
	}
	srv, err := service.Start(ctx, spec)
	if err != nil {
		return results.Run{}, err
	}
	load := s.sends(j.Config)
	load.Seed = j.Seed
	base := &http.Transport{MaxIdleConnsPerHost: 2000}
	defer base.CloseIdleConnections()
	seen, err := newCrowd(s.crowd(j.Config), "http://"+srv.Address, base, j.Protected, load)
	if err != nil {
		return results.Run{}, err
	}
	run, _, err := srv.Measure(ctx, load, seen.do)
	if err != nil {
		return results.Run{}, err
	}
	run.Extra = s.figures(j.Config, seen, &run)
	run.Params = map[string]any{"trigger": j.Trigger.Seconds(), "after": j.After.Seconds()}
	return run, nil
}

// present is the figures that there are.
func present(figures map[string]float64) map[string]float64 {
	maps.DeleteFunc(figures, func(_ string, x float64) bool { return math.IsNaN(x) })
	return figures
}
