package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/overload/demo"
)

type demoCmd struct {
	Duration time.Duration `env:"SPILLWAY_DEMO_DURATION" default:"25s" help:"How long calm, storm and aftermath last together."`
	JSON     bool          `name:"json" env:"SPILLWAY_DEMO_JSON" help:"Print everything as JSON on standard output; the live rows go to standard error."`
}

// Help teaches.
func (demoCmd) Help() string {
	return `One service three times, side by side in this process: unprotected, behind a semaphore that is four times too large, and behind limiter.New(limiter.Config{}). Its database answers ten questions at a time at full speed, 250 a second; asked more at once it slows down, as databases do. The load is half of that, then three times it, then half again. Every request waits a second for its answer.

Then three handlers panic at a limit of two. Is there a slot left?

Examples:
  spillway demo
  spillway demo --json > demo.json
  spillway lab overload              the same for real: HTTP, SQLite, seven contestants, verdicts

Exit codes: 0 shown, whatever it showed; 2 bad input; 130 Ctrl-C.`
}

func (c *demoCmd) Run(env *environment) error {
	if c.Duration < 500*time.Millisecond || c.Duration > 10*time.Minute {
		return badInput(fmt.Errorf("duration is %v: want 500ms to 10m", c.Duration))
	}
	cfg := demo.Default(c.Duration)
	rows := env.stdout
	if c.JSON {
		rows = env.stderr
	}
	var show display = &plainRows{w: rows, cfg: cfg}
	if isTerminal(rows) {
		show = &liveRows{w: rows, cfg: cfg}
	}
	show.begin()
	res, err := demo.Run(env.ctx, cfg, show.row)
	if err != nil {
		return err
	}
	if !res.Partial {
		if res.Panics, err = demo.ThreePanics(env.ctx); err != nil && env.ctx.Err() == nil {
			return err
		}
		res.Partial = env.ctx.Err() != nil
	}
	if c.JSON {
		if err := writeJSON(env.stdout, res); err != nil {
			return err
		}
	} else {
		conclude(rows, res)
	}
	if res.Partial {
		return errInterrupted
	}
	return nil
}

// conclude prints what was seen, one line each.
func conclude(w io.Writer, res *demo.Result) {
	if res.Partial {
		return
	}
	fmt.Fprintln(w, "\nAnswered in time, of what was possible:")
	for _, line := range res.Verdicts {
		fmt.Fprintln(w, "  "+line)
	}
	fmt.Fprintf(w, "\nThree panics: %s\n", res.Panics.Conclusion)
	fmt.Fprintln(w, "\nNext: spillway lab overload measures this for real, over HTTP and SQLite, with seven contestants.")
}

// display shows rows as they come.
type display interface {
	begin()
	row(demo.Row)
}

func loadWords(r demo.Row) string {
	return fmt.Sprintf("%.1fx, %.0f requests a second", r.Load, r.Offered)
}

// plainRows prints a line for each row, the lanes side by side.
type plainRows struct {
	w   io.Writer
	cfg demo.Config
}

func (p *plainRows) begin() {
	fmt.Fprintf(p.w, "A service that can do %.0f requests a second, three times. Good answers a second, and the p99 of whatever was not refused:\n\n", p.cfg.Work.Capacity())
	fmt.Fprintf(p.w, "%4s  %5s", "s", "load")
	for _, l := range demo.Lanes {
		fmt.Fprintf(p.w, "  %24s", l.Name)
	}
	fmt.Fprintln(p.w)
}

func (p *plainRows) row(r demo.Row) {
	fmt.Fprintf(p.w, "%4.3g  %4.1fx", r.At, r.Load)
	for _, c := range r.Lanes {
		fmt.Fprintf(p.w, "  %13.0f/s %8s", c.Good, demo.Millis(c.P99))
	}
	fmt.Fprintln(p.w)
}

// liveRows repaints one block of the terminal.
type liveRows struct {
	w       io.Writer
	cfg     demo.Config
	history [][]float64 // goodput by lane
	painted bool
}

// liveLines is the height of the block: the load, the names, the lanes.
func (p *liveRows) liveLines() int { return 3 + len(demo.Lanes) }

func (p *liveRows) begin() {
	fmt.Fprintf(p.w, "A service that can do %.0f requests a second, three times.\n\n", p.cfg.Work.Capacity())
	p.history = make([][]float64, len(demo.Lanes))
}

func (p *liveRows) row(r demo.Row) {
	var b strings.Builder
	if p.painted {
		fmt.Fprintf(&b, "\x1b[%dA", p.liveLines())
	}
	p.painted = true
	line := func(format string, args ...any) { fmt.Fprintf(&b, "\r\x1b[K"+format+"\n", args...) }
	line("%s: %s, second %.0f", p.cfg.Phases[r.Phase].Name, loadWords(r), r.At)
	line("%-24s %7s %8s %8s %8s %9s  good, second by second", "", "good/s", "p99", "refused", "late", "in flight")
	for i, c := range r.Lanes {
		p.history[i] = append(p.history[i], c.Good)
		line("%-24s %7.0f %8s %8.0f %8.0f %9d  %s", demo.Lanes[i].Name, c.Good, demo.Millis(c.P99), c.Refused, c.Late, c.InFlight,
			sparks(p.history[i], p.cfg.Work.Capacity()))
	}
	line("")
	_, _ = io.WriteString(p.w, b.String())
}

// sparks draws values from 0 to top as little bars, the last thirty of them.
func sparks(values []float64, top float64) string {
	const bars = "▁▂▃▄▅▆▇█"
	levels := []rune(bars)
	var b strings.Builder
	for _, v := range values[max(0, len(values)-30):] {
		b.WriteRune(levels[min(max(int(v/top*float64(len(levels))), 0), len(levels)-1)])
	}
	return b.String()
}
