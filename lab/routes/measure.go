package routes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
)

const (
	roleServer = "routes"
	roleLate   = "routes-late"
)

// Roles are the roles of its contestants.
func Roles() map[string]contestant.Role {
	return map[string]contestant.Role{roleServer: runServer, roleLate: contestant.Func(lookLate)}
}

// job says which contestant a process runs.
type job struct{ Table, Name string }

// block is a number of requests for a contestant to answer.
type block struct {
	Scenario  string
	Requests  int
	Published bool // by the published harness
}

// measured is the cost of a block.
type measured struct {
	CPU, Wall      float64 // seconds
	Mallocs, Bytes uint64
	Pauses         []uint64  // of the collector, by the bounds of the runtime
	Bounds         []float64 // seconds
	Failed         string    // a wrong answer
}

// runServer answers blocks until it is stopped. They arrive over a separate port, one at
// a time.
func runServer(ctx context.Context, j *contestant.Job) (any, error) {
	var which job
	if err := j.Input(&which); err != nil {
		return nil, err
	}
	c, err := find(tables()[which.Table], which.Name)
	if err != nil {
		return nil, err
	}
	h, err := c.start()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	if err := j.Ready(l.Addr().String()); err != nil {
		return nil, err
	}
	conn, err := l.Accept()
	if err != nil {
		return struct{}{}, nil // stopped before the first block
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	s := server{rival: c, handlers: h, lanes: map[block][]harness{}}
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var b block
		if in.Decode(&b) != nil || out.Encode(s.run(b)) != nil {
			return struct{}{}, nil
		}
	}
}

// server is a contestant in its own process.
type server struct {
	rival    rival
	handlers handlers
	lanes    map[block][]harness // of goroutines, by kind of block
}

// lane returns a harness for each goroutine of a block.
func (s *server) lane(b block) []harness {
	b.Requests = 0
	if s.lanes[b] == nil {
		n := 1
		if b.Scenario == Parallel {
			n = runtime.GOMAXPROCS(0)
		}
		for range n {
			s.lanes[b] = append(s.lanes[b], newHarness(s.handlers, requests[b.Scenario], b.Published))
		}
	}
	return s.lanes[b]
}

func (s *server) run(b block) measured {
	lane := s.lane(b)
	each := max(1, b.Requests/len(lane))
	answer := func(h harness) {
		for range each {
			h.send()
		}
	}
	before := look()
	began, used := time.Now(), cpu()
	if len(lane) == 1 {
		answer(lane[0])
	} else {
		var all sync.WaitGroup
		for _, h := range lane {
			all.Go(func() { answer(h) })
		}
		all.Wait()
	}
	took, cost := time.Since(began), cpu()-used
	m := look().since(before)
	n := float64(b.Requests) / float64(each*len(lane)) // if it did not divide
	m.Wall, m.CPU = took.Seconds()*n, cost.Seconds()*n
	if want := requests[b.Scenario].Status; s.rival.name != Nothing && lane[0].status() != want {
		m.Failed = fmt.Sprintf("%s answered %d, want %d: %s", b.Scenario, lane[0].status(), want, lane[0].body())
	}
	return m
}

// pauses is the metric of the collector's pauses.
const pauses = "/sched/pauses/total/gc:seconds"

// runtimeCounts is what the runtime has counted so far.
type runtimeCounts struct {
	mallocs, bytes uint64
	pauses         *metrics.Float64Histogram
}

func look() runtimeCounts {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	sample := []metrics.Sample{{Name: pauses}}
	metrics.Read(sample)
	out := runtimeCounts{mallocs: m.Mallocs, bytes: m.TotalAlloc}
	if sample[0].Value.Kind() == metrics.KindFloat64Histogram {
		out.pauses = sample[0].Value.Float64Histogram()
	}
	return out
}

// since is the difference between two counts. Only non-empty buckets of pauses are in
// it.
func (l runtimeCounts) since(before runtimeCounts) measured {
	m := measured{Mallocs: l.mallocs - before.mallocs, Bytes: l.bytes - before.bytes}
	if l.pauses == nil || before.pauses == nil {
		return m
	}
	for i, n := range l.pauses.Counts {
		if n -= before.pauses.Counts[i]; n > 0 {
			bound := l.pauses.Buckets[i+1]
			if math.IsInf(bound, 1) {
				bound = l.pauses.Buckets[i]
			}
			m.Pauses, m.Bounds = append(m.Pauses, n), append(m.Bounds, bound)
		}
	}
	return m
}

// remote is the lab's connection to a contestant's process.
type remote struct {
	process *contestant.Process
	conn    net.Conn
	in      *json.Decoder
	out     *json.Encoder
}

func ask(ctx context.Context, spec contestant.Spec) (*remote, error) {
	var addr string
	p, err := contestant.Start(ctx, spec, &addr)
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		_, _ = p.Stop(ctx, nil)
		return nil, err
	}
	return &remote{p, conn, json.NewDecoder(conn), json.NewEncoder(conn)}, nil
}

// run sends a block and returns its measurement. gone is true if the contestant was
// killed.
func (a *remote) run(ctx context.Context, b block) (m measured, gone bool, err error) {
	defer context.AfterFunc(ctx, func() { a.conn.Close() })()
	if err = a.out.Encode(b); err == nil {
		err = a.in.Decode(&m)
	}
	switch {
	case ctx.Err() != nil:
		return m, false, ctx.Err()
	case err != nil:
		return m, true, nil
	case m.Failed != "":
		return m, false, errors.New(m.Failed)
	case m.CPU <= 0:
		return m, false, errors.New("this system does not report a process's processor time")
	}
	return m, false, nil
}

func (a *remote) stop(ctx context.Context) (contestant.Exit, error) {
	a.conn.Close()
	return a.process.Stop(ctx, nil)
}
