package metrics

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/spillway-go/spillway/limiter"
)

// KeyedConfig says how a family of limiters is shown.
type KeyedConfig struct {
	// Name is the value of the label limiter, the same for the whole family. It
	// must differ from the names of other limiters and families that are shown.
	Name   string
	Family *limiter.Keyed

	// Label returns the value of the label key for a key of the family, such as
	// the plan of a tenant. Limiters with the same value are shown as one. Nil means the
	// key itself. Whatever it is, it is cut after 128 bytes, and what is not UTF-8
	// is replaced.
	Label func(key string) string

	// MaxLabels bounds how many values the label ever has, beside "(other)" and the
	// family's shared "(overflow)". The first ones that are read keep theirs as long as
	// the Source lives; all later ones are shown as "(other)". Zero means 100.
	MaxLabels int
}

const (
	defaultMaxLabels = 100
	other            = "(other)"
)

// family remembers what was counted, so that a series never falls when the family
// forgets a limiter to make room for another key.
type family struct {
	cfg KeyedConfig

	mu   sync.Mutex
	sums map[string]samples // by label, never forgotten
	last map[string]samples // by key, of the limiters that were there at the last read
}

// Keyed returns a family of limiters as metrics: one series of each metric for each
// value of the label key. Counters go on when the family forgets a limiter; what
// that one counted after the last read is lost. The error says which setting is
// wrong.
func Keyed(cfg KeyedConfig) (*Source, error) {
	switch {
	case cfg.Family == nil:
		return nil, errors.New("metrics: Keyed needs a Family")
	case cfg.MaxLabels < 0:
		return nil, fmt.Errorf("metrics: MaxLabels is %d: it cannot be negative (zero means %d)", cfg.MaxLabels, defaultMaxLabels)
	}
	cfg.MaxLabels = cmp.Or(cfg.MaxLabels, defaultMaxLabels)
	if cfg.Label == nil {
		cfg.Label = func(key string) string { return key }
	}
	f := &family{cfg: cfg, sums: map[string]samples{}}
	return &Source{kind: "limiter", name: Clean(cfg.Name), metrics: limiterMetrics, read: f.read}, nil
}

func (f *family) read() []Sample {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, sum := range f.sums {
		for i := range sum {
			if !rises(&sum[i]) {
				sum[i].Value = 0
			}
		}
	}
	seen := map[string]samples{}
	for key, stats := range f.cfg.Family.All() {
		label := f.label(key)
		stats.Demand *= float64(stats.Limit) // in slots, which can be added up
		now := limiterSamples(label, stats)
		if f.sums[label] == nil {
			f.sums[label] = now.zero()
		}
		f.sums[label].add(now, f.last[key])
		seen[key] = now
	}
	f.last = seen
	all := make(samples, 0, len(f.sums)*80)
	for _, sum := range f.sums { // also of limiters that are gone
		start := len(all)
		all = append(all, sum...)
		all[start:].shown()
	}
	return all
}

// zero returns samples of the same labels without values.
func (s samples) zero() samples {
	z := slices.Clone(s)
	for i := range z {
		z[i].Value, z[i].Times = 0, Times{Counts: make([]uint64, len(z[i].Times.Counts))}
	}
	return z
}

// shown makes a copy of a sum what Read returns.
func (s samples) shown() {
	limit := 0.0
	for i := range s {
		switch s[i].Metric {
		case slots:
			limit = s[i].Value
		case demand:
			if limit > 0 {
				s[i].Value /= limit
			}
		}
		s[i].Times.Counts = slices.Clone(s[i].Times.Counts)
	}
}

// rises reports whether a sample counts for ever.
func rises(s *Sample) bool {
	kind := limiterMetrics[s.Metric].Kind
	return kind == Counter || kind == Histogram
}

// add adds one limiter: what it counted since last, and what it has now.
func (s samples) add(now, last samples) {
	if last == nil || now.fell(last) { // another limiter, under the same key
		last = now.zero()
	}
	for i := range s {
		sum, n, before := &s[i], &now[i], &last[i]
		switch {
		case n.Metric == oldest:
			sum.Value = max(sum.Value, n.Value)
		case !rises(n):
			sum.Value += n.Value
		default:
			sum.Value += n.Value - before.Value
			sum.Times.Sum += n.Times.Sum - before.Times.Sum
			for j, c := range n.Times.Counts {
				sum.Times.Counts[j] += c - before.Times.Counts[j]
			}
		}
	}
}

// fell reports whether something was counted in last that is not there now.
func (s samples) fell(last samples) bool {
	for i := range s {
		if !rises(&s[i]) {
			continue
		}
		if s[i].Value < last[i].Value || s[i].Times.Sum < last[i].Times.Sum {
			return true
		}
		for j, c := range s[i].Times.Counts {
			if c < last[i].Times.Counts[j] {
				return true
			}
		}
	}
	return false
}

// label returns the value under which a key is shown.
func (f *family) label(key string) string {
	if key == limiter.Overflow {
		return key
	}
	label := Clean(f.cfg.Label(key))
	if f.sums[label] == nil && len(f.sums) >= f.cfg.MaxLabels+f.reserved() {
		return other
	}
	return label
}

// reserved is how many of the labels do not count.
func (f *family) reserved() (n int) {
	for _, label := range []string{other, limiter.Overflow} {
		if f.sums[label] != nil {
			n++
		}
	}
	return n
}
