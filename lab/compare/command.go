package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// CommandMetrics are the figures of a command, the usual one first.
var CommandMetrics = []Metric{
	{Name: "wall", Unit: "ms"},
	{Name: "cpu", Unit: "ms"},
	{Name: "printed"},
}

// Command measures a command line that the system's shell runs.
func Command(line string, m Metric) Measure {
	return func(ctx context.Context) (float64, error) {
		shell := []string{"sh", "-c"}
		if runtime.GOOS == "windows" {
			shell = []string{"cmd", "/c"}
		}
		cmd := exec.CommandContext(ctx, shell[0], append(shell[1:], line)...)
		cmd.WaitDelay = time.Second // for what it started and left behind
		var out, errs tail
		cmd.Stdout, cmd.Stderr = &out, &errs
		began := time.Now()
		err := cmd.Run()
		took := time.Since(began)
		switch {
		case err != nil:
			said := strings.TrimSpace(errs.end.String())
			if i := strings.LastIndexByte(said, '\n'); i >= 0 {
				said = said[i+1:]
			}
			return math.NaN(), fmt.Errorf("the command %q failed: %w", line, errors.Join(err, notEmpty(said)))
		case m.Name == "cpu":
			return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds() * 1000, nil
		case m.Name == "printed":
			x, ok := lastNumber(out.end.String())
			if !ok {
				return math.NaN(), fmt.Errorf("the command %q printed no number", line)
			}
			if x < 0 {
				return math.NaN(), fmt.Errorf("the command %q printed %v: want no negative number, since ratios are compared", line, x)
			}
			return x, nil
		}
		return took.Seconds() * 1000, nil
	}
}

func notEmpty(said string) error {
	if said == "" {
		return nil
	}
	return errors.New(said)
}

var number = regexp.MustCompile(`[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?`)

// lastNumber is the last number in a text.
func lastNumber(text string) (float64, bool) {
	all := number.FindAllString(text, -1)
	if len(all) == 0 {
		return 0, false
	}
	x, err := strconv.ParseFloat(all[len(all)-1], 64)
	return x, err == nil
}

// tail keeps the end of what a command prints.
type tail struct{ end bytes.Buffer }

const tailSize = 64 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.end.Write(b)
	if t.end.Len() > 2*tailSize {
		t.end.Next(t.end.Len() - tailSize)
	}
	return len(b), nil
}
