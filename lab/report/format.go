package report

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/internal/numbers"
	"github.com/spillway-go/spillway/lab/results"
)

// none is shown where there is no value; it is not a zero.
const none = "–"

func number(v float64) string { return numbers.Format(v) }

// nanos writes a duration given in nanoseconds with its best unit.
func nanos(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 999.5:
		return numbers.Format(v) + " ns"
	case v < 999.5e3:
		return numbers.Format(v/1e3) + " µs"
	case v < 999.5e6:
		return numbers.Format(v/1e6) + " ms"
	}
	return numbers.Format(v/1e9) + " s"
}

func micros(v float64) string { return nanos(1e3 * v) }

func size(v float64) string {
	const unit = 1024
	switch {
	case v < unit:
		return numbers.Format(v) + " B"
	case v < unit*unit:
		return numbers.Format(v/unit) + " KiB"
	case v < unit*unit*unit:
		return numbers.Format(v/unit/unit) + " MiB"
	}
	return numbers.Format(v/unit/unit/unit) + " GiB"
}

func decimals(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

func ratio(v float64) string { return decimals(v) + "x" }

func percent(share float64) string { return numbers.Format(100*share) + " %" }

// or writes the median of a figure, or none when it was not measured.
func (s stat) or(format func(float64) string) string {
	if len(s) == 0 {
		return none
	}
	return format(s.median())
}

// orNone also replaces zero, so that tables show only what occurred.
func (s stat) orNone(format func(float64) string) string {
	if s.median() == 0 {
		return none
	}
	return s.or(format)
}

// with writes a value in a claim's unit.
func with(v float64, unit string) string {
	switch unit {
	case "":
		return number(v)
	case "x":
		return number(v) + "x"
	}
	return number(v) + " " + unit
}

// measured reports whether the claim has a figure at all.
func measured(c results.OldClaim) bool {
	return c.Runs > 0 && (c.Measured != 0 || c.Low != 0 || c.High != 0 || c.Verdict != results.Inconclusive)
}

// noiseWords writes a noise floor: of a ratio in per cent.
func noiseWords(c results.OldClaim) string {
	if c.Unit == "x" {
		return "± " + percent(c.NoiseFloor)
	}
	return "± " + with(c.NoiseFloor, c.Unit)
}

// interval writes a claim's measured value, its interval and its repeats.
func interval(c results.OldClaim) string {
	if !measured(c) {
		return "no figure from " + count(c.Runs, "run")
	}
	if c.Low == c.High {
		return fmt.Sprintf("%s (%s)", with(c.Measured, c.Unit), count(c.Runs, "run"))
	}
	return fmt.Sprintf("%s (%s%s%s, %s)", with(c.Measured, c.Unit),
		number(c.Low), pick(c.Low < 0, " to ", " – "), number(c.High), count(c.Runs, "run"))
}

func count(n int, what string) string {
	return fmt.Sprintf("%s %s", number(float64(n)), pick(n == 1, what, what+"s"))
}

// machine is one line.
func machine(m results.Machine) string {
	parts := []string{pick(m.CPU != "", fmt.Sprintf("%d × %s", m.CPUs, m.CPU), count(m.CPUs, "CPU"))}
	if m.GOMAXPROCS != m.CPUs {
		parts = append(parts, fmt.Sprintf("GOMAXPROCS %d", m.GOMAXPROCS))
	}
	if m.MemoryMiB > 0 {
		parts = append(parts, size(float64(m.MemoryMiB)*(1<<20)))
	}
	parts = append(parts, strings.TrimSpace(m.OS+"/"+m.Arch), m.Go)
	return strings.Join(parts, " · ")
}

func took(res results.Results) string {
	d := res.Ended.Sub(res.Started)
	switch {
	case d <= 0:
		return none
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// command writes the command as a shell would take it.
func command(args []string) string {
	quoted := make([]string, len(args))
	for i, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$`*?<>|&;()[]{}#~!") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		quoted[i] = a
	}
	return strings.Join(quoted, " ")
}
