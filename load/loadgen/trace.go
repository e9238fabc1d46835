package loadgen

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Trace starts requests at the times of a recording. Offsets are sorted and counted from the first
// one. At is O(1).
func Trace(offsets []time.Duration) Schedule {
	t := trace{slices.Clone(offsets)}
	slices.Sort(t.at)
	if len(t.at) > 0 {
		first := t.at[0]
		for i := range t.at {
			t.at[i] -= first
		}
	}
	return t
}

type trace struct{ at []time.Duration }

func (t trace) check() error {
	if len(t.at) == 0 {
		return errors.New("loadgen: a trace without requests")
	}
	if t.at[len(t.at)-1] < 0 {
		return errors.New("loadgen: a trace of more than 290 years")
	}
	return nil
}

func (t trace) At(n uint64) (time.Duration, bool) {
	switch {
	case n < uint64(len(t.at)):
		return t.at[n], true
	case len(t.at) == 0:
		return 0, false
	}
	return t.at[len(t.at)-1], false
}

// ReadTrace reads the start times of recorded requests: a line each, with seconds such as 12.5 or a
// time such as 12.5s, alone or as the first column of a CSV file. Unix times are valid, too. Empty
// lines, lines that begin with #, and a first line of column names are skipped.
func ReadTrace(r io.Reader) ([]time.Duration, error) {
	var offsets []time.Duration
	lines := bufio.NewScanner(withoutMark(r))
	for line := 1; lines.Scan(); line++ {
		text, _, _ := strings.Cut(lines.Text(), ",")
		text = strings.Trim(strings.TrimSpace(text), `"`)
		if text == "" || text[0] == '#' {
			continue
		}
		at, err := parseOffset(text)
		if err != nil {
			if line == 1 {
				continue
			}
			return nil, fmt.Errorf("loadgen: trace: line %d: %.40q: want seconds such as 12.5, or a time such as 12.5s", line, text)
		}
		offsets = append(offsets, at)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("loadgen: trace: %w", err)
	}
	if len(offsets) == 0 {
		return nil, errors.New("loadgen: trace: want a line for each request, with seconds such as 12.5")
	}
	return offsets, nil
}

func parseOffset(text string) (time.Duration, error) {
	if at, err := time.ParseDuration(text + "s"); err == nil && isDigit(text[len(text)-1]) {
		return at, nil
	}
	return time.ParseDuration(text)
}
