package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/spillway-go/spillway/load"
	"github.com/spillway-go/spillway/load/agents"
	"github.com/spillway-go/spillway/loadgen"
)

// agentProgram is what knows NATS.
const agentProgram = "github.com/spillway-go/spillway/lab/contestants/agents"

// distributed reports whether agents send the load.
func (c *loadCmd) distributed() bool { return c.Agents != 0 || c.Server.URL != "" }

func (c *loadCmd) checkAgents(args []string) error {
	switch {
	case c.Agents < 0 || c.Agents > 10_000:
		return fmt.Errorf("--agents is %d: want 1 to 10000", c.Agents)
	case c.AgentsWait <= 0:
		return fmt.Errorf("--agents-wait is %v: want more than 0", c.AgentsWait)
	case c.Server.URL != "":
		return c.Check(args)
	case c.Server != (agents.Server{}):
		return errors.New("the credentials of a NATS server go with --nats")
	}
	return nil
}

// sendFromAgents lets agents send the load, and returns what all of them measured.
func (c *loadCmd) sendFromAgents(env *environment, spec load.Spec, progress func(loadgen.Snapshot)) (m measured, err error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return m, err
	}
	path, err := programPath(env, agentProgram)
	if err != nil {
		return m, fmt.Errorf("no agent was started: %w", err)
	}
	// It ends with its standard input, and writes to standard error at any time.
	program := exec.Command(path, "coordinate")
	program.Stderr = os.Stderr
	m.report, err = agents.Delegate(env.ctx, program,
		agents.Order{Load: text, Interval: c.Interval, Agents: c.Agents, Wait: c.AgentsWait, Server: c.Server},
		progress, func(line string) {
			env.status("")
			fmt.Fprintln(env.stderr, line)
		})
	switch {
	case errors.Is(err, agents.ErrInput):
		return m, badInput(err)
	case err != nil:
		return m, err
	}
	m.result, m.firstError = m.report.Result, m.report.FirstError()
	var cpu time.Duration
	cpu, m.sent, m.received = m.report.Cost()
	if m.result.Offered > 0 {
		m.cost.Micros = float64(cpu.Nanoseconds()) / 1e3 / float64(m.result.Offered)
	}
	for i := range m.report.Agents {
		m.cost.PeakRSS += m.report.Agents[i].PeakRSS
	}
	return m, nil
}

// loadAgent is an agent's part in a load.
type loadAgent struct {
	Name          string          `json:"name"`
	Offered       uint64          `json:"offered"`
	Outcomes      []loadOutcome   `json:"outcomes,omitempty"`
	Lag           *latencySummary `json:"send_lag_ms,omitempty"`
	Generator     generatorCost   `json:"generator,omitzero"`
	BytesSent     uint64          `json:"bytes_sent"`
	BytesReceived uint64          `json:"bytes_received"`
	Offset        float64         `json:"clock_offset_ms"`      // of its clock from the coordinator's
	Uncertainty   float64         `json:"clock_uncertainty_ms"` // the offset is within ± this
	Moved         float64         `json:"clock_moved_ms"`       // by so much at least since the start
	Late          float64         `json:"late_ms"`              // how long after the start it learned of it
	Lost          string          `json:"lost,omitempty"`
}

func (s *loadSummary) summarizeAgents(r *agents.Report) {
	if r == nil {
		return
	}
	s.Invalid, s.Warnings = r.Invalid, r.Warnings
	ms := func(d time.Duration) float64 { return float64(d) / 1e6 }
	for i := range r.Agents {
		a := &r.Agents[i]
		own := loadAgent{
			Name: a.Name, Offered: a.LastSent, BytesSent: a.Sent, BytesReceived: a.Received,
			Offset: ms(a.ClockOffset), Uncertainty: ms(a.Uncertainty), Moved: ms(a.ClockMoved), Late: ms(a.Late), Lost: a.Lost,
		}
		if a.Result != nil {
			own.Outcomes, own.Lag = summarizeOutcomes(a.Result.Outcomes[:], a.Result.Elapsed), milliseconds(&a.Result.Lag)
			own.Generator.PeakRSS = a.PeakRSS
			if a.Result.Offered > 0 {
				own.Generator.Micros = float64(a.CPU.Nanoseconds()) / 1e3 / float64(a.Result.Offered)
			}
		}
		s.Agents = append(s.Agents, own)
	}
}

func (s *loadSummary) printAgents(w io.Writer) {
	if len(s.Agents) > 0 {
		fmt.Fprintf(w, "\n%-24s %9s %9s %9s %9s %9s  %10s %10s %9s %9s\n", "agent", "requests", "ok", "rejected", "error", "timeout", "sent", "received", "CPU (µs)", "lag p99")
	}
	for i, a := range s.Agents {
		fmt.Fprintf(w, "%-24s %9d", fmt.Sprintf("%d %s", i+1, a.Name), a.Offered)
		for _, o := range a.Outcomes {
			fmt.Fprintf(w, " %9d", o.Count)
		}
		if a.Lost != "" {
			fmt.Fprintf(w, "  lost: %s", a.Lost)
		} else if a.Lag != nil {
			fmt.Fprintf(w, "  %10s %10s %9.1f %6.2f ms", mebibytes(a.BytesSent), mebibytes(a.BytesReceived), a.Generator.Micros, a.Lag.P99)
		}
		fmt.Fprintln(w)
	}
	if len(s.Agents) > 0 {
		worst := 0.0
		for _, a := range s.Agents {
			worst = max(worst, a.Uncertainty)
		}
		fmt.Fprintf(w, "all began at one instant, known to ±%.2f ms\n", worst)
	}
	for _, warning := range s.Warnings {
		fmt.Fprintln(w, "note:", warning)
	}
}

func mebibytes(n uint64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
