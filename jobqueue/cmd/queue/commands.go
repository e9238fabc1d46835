package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"text/tabwriter"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
)

type inspectCmd struct{}

// Run prints the counts.
func (inspectCmd) Run(c *console, p *place) error {
	return p.use(c, func(q opened) error {
		s, err := q.Stats(c)
		if err != nil {
			return err
		}
		if p.Dir != "" {
			idle(&s)
		}
		if p.JSON {
			return c.json(counted(s, q.oldest))
		}
		w := tabwriter.NewWriter(c.out, 0, 0, 3, ' ', tabwriter.AlignRight)
		fmt.Fprintln(w, "priority\tready\tdelayed\tin flight\t")
		line := func(name string, d jobqueue.Depth) {
			fmt.Fprintf(w, "%s\t%d\t%d\t%d\t\n", name, d.Ready, d.Delayed, d.InFlight)
		}
		for i := spillway.Critical; i >= spillway.Low; i-- {
			if d, known := s.Priorities[i]; known {
				line(i.String(), d)
			}
		}
		line("all", s.Depth)
		if err := w.Flush(); err != nil {
			return err
		}
		if !q.oldest.IsZero() {
			age := max(time.Since(q.oldest), 0).Round(time.Second)
			fmt.Fprintf(c.out, "the oldest that has not ended was enqueued %s ago, at %s\n", age, q.oldest.UTC().Format(time.RFC3339))
		}
		fmt.Fprintf(c.out, "%d dead letters", s.Dead)
		if s.Dead > 0 {
			fmt.Fprint(c.out, ": see spillway queue dead")
		}
		_, err = fmt.Fprintln(c.out)
		return err
	})
}

// idle counts the jobs in flight as delayed, for a queue that no process works on. The engine does
// not distinguish delayed jobs and jobs that await the next attempt from jobs that a worker holds.
func idle(s *jobqueue.Stats) {
	s.Delayed, s.InFlight = s.Delayed+s.InFlight, 0
	for p, d := range s.Priorities {
		d.Delayed, d.InFlight = d.Delayed+d.InFlight, 0
		s.Priorities[p] = d
	}
}

// depth is a jobqueue.Depth as JSON.
type depth struct {
	Ready    int `json:"ready"`
	Delayed  int `json:"delayed"`
	InFlight int `json:"in_flight"`
}

type counts struct {
	depth
	Oldest     *time.Time                  `json:"oldest,omitempty"` // when the oldest job was enqueued
	Dead       int                         `json:"dead"`
	Priorities map[spillway.Priority]depth `json:"priorities"`
}

func counted(s jobqueue.Stats, oldest time.Time) counts {
	out := counts{depth: depth(s.Depth), Dead: s.Dead, Priorities: map[spillway.Priority]depth{}}
	if !oldest.IsZero() {
		out.Oldest = &oldest
	}
	for p, d := range s.Priorities {
		out.Priorities[p] = depth(d)
	}
	return out
}

func (c *console) json(v any) error {
	e := json.NewEncoder(c.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

type deadCmd struct {
	Limit   int  `default:"100" help:"At most so many."`
	Payload bool `help:"With --json: payloads too, in base64. They may be confidential."`
}

// letter is a dead letter as JSON.
type letter struct {
	ID       uint64            `json:"id"`
	Key      string            `json:"key"`
	Priority spillway.Priority `json:"priority"`
	Attempts int               `json:"attempts"`
	Reason   string            `json:"reason"`
	Died     time.Time         `json:"died"`
	Bytes    int               `json:"bytes"`
	Header   map[string]string `json:"header,omitempty"`
	Payload  []byte            `json:"payload,omitempty"`
}

// Run lists dead letters.
func (d *deadCmd) Run(c *console, p *place) error {
	if d.Limit < 1 {
		return badInput("--limit is %d: it must be above zero", d.Limit)
	}
	if d.Payload && !p.JSON {
		return badInput("--payload needs --json")
	}
	return p.use(c, func(q opened) error {
		dead, err := q.Dead(c, d.Limit)
		if err != nil {
			return err
		}
		letters := make([]letter, 0, len(dead))
		for _, one := range dead {
			l := letter{ID: one.ID, Key: one.Job.Key, Priority: one.Job.Priority, Attempts: one.Attempts, Reason: one.Reason,
				Died: one.Died, Bytes: len(one.Job.Payload), Header: one.Job.Header}
			if d.Payload {
				l.Payload = one.Job.Payload
			}
			letters = append(letters, l)
		}
		if p.JSON {
			return c.json(letters)
		}
		w := tabwriter.NewWriter(c.out, 0, 0, 3, ' ', 0)
		fmt.Fprintln(w, "id\tdied\tattempts\tpriority\tbytes\tkey\treason")
		for _, l := range letters {
			fmt.Fprintf(w, "%d\t%s\t%d\t%s\t%d\t%s\t%s\n", l.ID, l.Died.UTC().Format(time.RFC3339), l.Attempts, l.Priority, l.Bytes, shown(l.Key, 40), shown(l.Reason, 80))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if len(dead) == d.Limit {
			fmt.Fprintf(c.err, "only %d were asked for; --limit says how many\n", d.Limit)
		}
		return nil
	})
}

// shown returns the beginning of a text, on one line and without control characters.
func shown(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most-1]) + "…"
	}
	quoted := fmt.Sprintf("%q", text)
	return quoted[1 : len(quoted)-1]
}

type retryCmd struct {
	ID  []uint64 `arg:"" optional:"" help:"Numbers of dead letters, as spillway queue dead lists them."`
	All bool     `help:"All that are dead letters now."`
}

// Run replays dead letters.
func (r *retryCmd) Run(c *console, p *place) error {
	if r.All == (len(r.ID) > 0) {
		return badInput("name dead letters by their numbers, or use --all")
	}
	return p.use(c, func(q opened) error {
		ids := r.ID
		if r.All {
			dead, err := q.Dead(c, math.MaxInt32)
			if err != nil {
				return err
			}
			for _, d := range dead {
				ids = append(ids, d.ID)
			}
		}
		done, faults := 0, []error(nil)
		for _, id := range ids {
			err := q.Replay(c, id)
			if err == nil {
				done++
				continue
			}
			if r.All && errors.Is(err, jobqueue.ErrNotFound) {
				continue // another process was faster
			}
			faults = append(faults, err)
			if !errors.Is(err, jobqueue.ErrNotFound) {
				break
			}
		}
		return errors.Join(append(faults, c.result(p, "retried", done))...)
	})
}

// result prints the number of jobs that a command has changed.
func (c *console) result(p *place, word string, n int) error {
	if p.JSON {
		return c.json(map[string]int{word: n})
	}
	_, err := fmt.Fprintf(c.out, "%d %s\n", n, word)
	return err
}

type purgeCmd struct {
	Part string `arg:"" name:"waiting|dead" enum:"waiting,dead" help:"What to remove: waiting (jobs that are ready or delayed) or dead (all dead letters)."`
	Yes  bool   `help:"Do it. Without this the command only says how many would be removed."`
}

// Run removes jobs.
func (r *purgeCmd) Run(c *console, p *place) error {
	return p.use(c, func(q opened) error {
		purge := q.Purge
		if r.Part == "dead" {
			purge = q.PurgeDead
		}
		if !r.Yes {
			s, err := q.Stats(c)
			if err != nil {
				return err
			}
			n := s.Ready + s.Delayed
			if r.Part == "dead" {
				n = s.Dead
			}
			return badInput("this removes %d jobs for good; add --yes to do it", n)
		}
		n, err := purge(c)
		return errors.Join(err, c.result(p, "removed", n))
	})
}
