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
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
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
			x, err := lastNumber(out.end.String())
			if err != nil {
				return math.NaN(), fmt.Errorf("the command %q printed %w", line, err)
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

var (
	number = regexp.MustCompile(`^[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?$`)
	marks  = regexp.MustCompile(`(\D)[,:]|[,:](\D)`) // that are not between two digits
	name   = regexp.MustCompile(`^[\pL_/][^,:]*$`)
	none   = regexp.MustCompile(`(?i)^[-+]?(nan|inf|infinity)$`)
)

// lastNumber is the last word of a text that is a number. A part of a word is none: in
// 12ms, 1,234 or 12:30 it would have another meaning. Such a word is an error unless it is a
// name, such as p99 or go1.26.
func lastNumber(text string) (float64, error) {
	words := strings.FieldsFunc(marks.ReplaceAllString(text, "$1 $2"), func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("=;|\"'()[]{}", r)
	})
	for _, word := range slices.Backward(words) {
		word = strings.TrimRight(word, ".,:!?%")
		if number.MatchString(word) {
			if x, err := strconv.ParseFloat(word, 64); err == nil {
				return x, nil
			}
		} else if !none.MatchString(word) && (!strings.ContainsAny(word, "0123456789") || name.MatchString(word)) {
			continue
		}
		return 0, fmt.Errorf("%.40q, which is no number: want the figure as a word of its own, such as 12.5 ms", word)
	}
	return 0, errors.New("no number")
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
