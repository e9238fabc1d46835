package capacity

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spillway-go/spillway/load/numbers"
)

// SLO is what answers must keep. Parse it with ParseSLO.
type SLO struct {
	Latency          []Bound // of the good answers, in rising order of their quantiles
	Errors, Rejected float64 // the largest allowed shares of all requests; a timeout is an error
}

// Bound is the latency that a share of the good answers may not exceed.
type Bound struct {
	Name     string // p99
	Quantile float64
	At       time.Duration
}

// unsaid is the share of errors or refusals that is allowed where the SLO does not say.
const unsaid = 0.01

var quantiles = []Bound{{Name: "p50", Quantile: .5}, {Name: "p90", Quantile: .9}, {Name: "p99", Quantile: .99}, {Name: "p99.9", Quantile: .999}}

// ParseSLO reads parts such as p99=200ms, errors=0.1% and rejected=1%, with commas between
// them. Latencies are p50, p90, p99 and p99.9. Errors and refusals that are not mentioned
// may be 1 % each.
func ParseSLO(text string) (SLO, error) {
	slo := SLO{Errors: unsaid, Rejected: unsaid}
	var seen []string
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok {
			return SLO{}, fmt.Errorf("SLO %q: %q has no =: want parts such as p99=200ms, errors=0.1%% or rejected=1%%", text, part)
		}
		if slices.Contains(seen, name) {
			return SLO{}, fmt.Errorf("SLO %q: %s is there twice", text, name)
		}
		seen = append(seen, name)
		if err := slo.set(name, value); err != nil {
			return SLO{}, fmt.Errorf("SLO %q: %w", text, err)
		}
	}
	slices.SortFunc(slo.Latency, func(a, b Bound) int { return strings.Compare(a.Name, b.Name) })
	return slo, nil
}

func (s *SLO) set(name, value string) (err error) {
	switch name {
	case "errors":
		s.Errors, err = share(value)
		return err
	case "rejected":
		s.Rejected, err = share(value)
		return err
	}
	i := slices.IndexFunc(quantiles, func(b Bound) bool { return b.Name == name })
	if i < 0 {
		return fmt.Errorf("no %q: want p50, p90, p99, p99.9, errors or rejected", name)
	}
	b := quantiles[i]
	if b.At, err = time.ParseDuration(value); err != nil || b.At <= 0 {
		return fmt.Errorf("%s is %q: want a time such as 200ms or 1.5s", name, value)
	}
	s.Latency = append(s.Latency, b)
	return nil
}

// share reads a percentage.
func share(value string) (float64, error) {
	number, ok := strings.CutSuffix(value, "%")
	percent, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(percent >= 0 && percent <= 100) {
		return 0, fmt.Errorf("%q is no percentage: want 0%% to 100%%, such as 0.1%%", value)
	}
	return percent / 100, nil
}

// String writes the SLO with every part, also those that were not mentioned.
func (s SLO) String() string {
	var parts []string
	for _, b := range s.Latency {
		parts = append(parts, b.Name+"="+b.At.String())
	}
	return strings.Join(append(parts, "errors="+numbers.Bound(100*s.Errors)+"%", "rejected="+numbers.Bound(100*s.Rejected)+"%"), ",")
}

// strictest is the shortest latency of the SLO; false if it has none.
func (s SLO) strictest() (time.Duration, bool) {
	if len(s.Latency) == 0 {
		return 0, false
	}
	return slices.MinFunc(s.Latency, func(a, b Bound) int { return cmp.Compare(a.At, b.At) }).At, true
}

// widest is the longest latency of the SLO; 0 if it has none.
func (s SLO) widest() time.Duration {
	widest := time.Duration(0)
	for _, b := range s.Latency {
		widest = max(widest, b.At)
	}
	return widest
}

// beyondChance reports whether k of n is more than the share allows by more than chance:
// a service that has exactly that share would show as many in less than one probe of 20.
func beyondChance(k, n uint64, share float64) bool {
	if float64(k) <= share*float64(n) {
		return false
	}
	if share == 0 {
		return true
	}
	logFactorial := func(x float64) float64 { v, _ := math.Lgamma(x + 1); return v }
	x, all := float64(k), float64(n)
	term := math.Exp(logFactorial(all) - logFactorial(x) - logFactorial(all-x) + x*math.Log(share) + (all-x)*math.Log1p(-share))
	tail := 0.0
	for ; x <= all && term > 1e-9; x++ {
		tail += term
		term *= (all - x) / (x + 1) * share / (1 - share)
	}
	return tail < .05
}
