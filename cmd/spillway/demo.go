package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spillway-go/spillway/cmd/spillway/internal/demo"
)

const (
	laneWidth = 23 // three lanes fit in 80 columns
	barWidth  = 8
)

type demoCmd struct {
	Duration time.Duration `default:"25s" help:"How long calm, storm and aftermath last together; below 10s the shares mean little."`
	JSON     bool          `name:"json" help:"Print everything as JSON on standard output; the rows go to standard error."`
}

// Help teaches.
func (demoCmd) Help() string {
	return `One service three times, side by side in this process: unprotected, behind a semaphore that is four times too large, and behind limiter.New(limiter.Config{}). Its database answers ten questions at a time at full speed, 250 a second; asked more at once it slows down, as databases do. The load is half of that, then three times it, then half again. Every request waits a second for its answer; every fifth is critical and says so, which only the limiter looks at.

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
	out := env.stdout
	if c.JSON {
		out = env.stderr
	}
	fmt.Fprintf(out, "A service that can do %.0f requests a second, three times, under the same load:\n", demo.Capacity)
	fmt.Fprint(out, "good answers a second, and the p99 of whatever was not refused.\n\n")
	head := "   s"
	for _, l := range demo.Lanes {
		head += fmt.Sprintf("  %-*s", laneWidth, l.Name)
	}
	fmt.Fprintln(out, strings.TrimRight(head, " "))
	phase := ""
	res, err := demo.Run(env.ctx, c.Duration, func(p demo.Phase, r demo.Row) {
		if p.Name != phase {
			phase = p.Name
			fmt.Fprintf(out, "%s: %gx, %.0f requests a second\n", phase, r.Load, r.Offered)
		}
		line := fmt.Sprintf("%4.3g", r.At)
		for _, c := range r.Lanes {
			line += fmt.Sprintf("  %s %4.0f/s %7s", bar(c.Good/demo.Capacity), c.Good, demo.Millis(c.P99))
		}
		fmt.Fprintln(out, line)
	})
	if err != nil {
		return err
	}
	if !res.Partial {
		if res.Panics, err = demo.ThreePanics(env.ctx); err != nil && env.ctx.Err() == nil {
			return err
		}
		res.Partial = env.ctx.Err() != nil
	}
	conclude(out, res)
	if c.JSON {
		if err := writeJSON(env.stdout, res); err != nil {
			return err
		}
	}
	if res.Partial {
		return errInterrupted
	}
	return nil
}

// conclude prints the result; for a partial one, the completed part.
func conclude(w io.Writer, res *demo.Result) {
	if len(res.Verdicts) > 0 {
		fmt.Fprintln(w, "\nAnswered in time, of what was possible:")
	}
	for _, line := range res.Verdicts {
		lane, phases, _ := strings.Cut(line, ": ")
		fmt.Fprintf(w, "  %-*s  %s\n", laneWidth, lane, strings.ReplaceAll(phases, "; ", fmt.Sprintf(";\n%*s", laneWidth+4, "")))
	}
	if res.Partial {
		return
	}
	fmt.Fprintf(w, "\nThree panics: %s\n", strings.NewReplacer(": ", ":\n  ", "; ", ";\n  ").Replace(res.Panics.Conclusion))
	fmt.Fprintln(w, "\nNext: spillway lab overload measures this for real, over HTTP and SQLite,\nwith seven contestants.")
}

// bar draws a share of the whole width in eighths of a column.
func bar(share float64) string {
	eighths, n := []rune(" ▏▎▍▌▋▊▉"), int(min(max(share, 0), 1)*barWidth*8+.5)
	return fmt.Sprintf("%-*.*s", barWidth, barWidth, strings.Repeat("█", n/8)+string(eighths[n%8]))
}
