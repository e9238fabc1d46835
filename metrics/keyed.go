package metrics

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/spillway-go/spillway/internal/inside"
	"github.com/spillway-go/spillway/limiter"
)

// KeyedConfig configures the metrics of a family of limiters.
type KeyedConfig struct {
	// Name is the value of the label limiter, the same for the whole family. It must differ from
	// the names of other limiters and families that are shown.
	Name   string
	Family *limiter.Keyed

	// Label returns the value of the label key for a key of the family, such as the plan of a
	// tenant. Limiters with the same value are shown as one. Nil means the key itself. The value is
	// cut after 128 bytes, and invalid UTF-8 is replaced. Label is called by Read, and by callers
	// of the family that use a new key.
	Label func(key string) string

	// MaxLabels bounds the number of label values, besides "(other)" and the family's shared
	// "(overflow)". The first values seen keep their series as long as the Source lives. All later
	// values are shown as "(other)". Zero means 100.
	MaxLabels int
}

const (
	defaultMaxLabels = 100
	other            = "(other)"
)

// family keeps the counts of evicted limiters, so that no series falls when the family evicts a
// limiter to make room for another key.
type family struct {
	cfg   KeyedConfig
	watch iter.Seq2[string, any] // of *limiter.Limiter

	reading sync.Mutex // one reader at a time

	mu   sync.Mutex
	sums map[string]samples           // by label, never removed
	last map[*limiter.Limiter]samples // counts already added, by current limiter
}

// Keyed returns a family of limiters as metrics: one series of each metric for each value of the
// label key. Counters keep the counts of evicted limiters, from the call of Keyed on. The error
// names the wrong setting.
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
	f := &family{cfg: cfg, sums: map[string]samples{}, last: map[*limiter.Limiter]samples{}}
	f.watch = inside.OfKeyed(cfg.Family).Watch(f.evicted)
	return &Source{kind: "limiter", name: clean(cfg.Name), metrics: limiterMetrics, read: f.read}, nil
}

func (f *family) read() []Sample {
	f.reading.Lock()
	defer f.reading.Unlock()
	f.rest()
	for key, l := range f.watch {
		f.present(key, l.(*limiter.Limiter))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make(samples, 0, len(f.sums)*80)
	for _, sum := range f.sums { // includes the sums of evicted limiters
		start := len(all)
		all = append(all, sum...)
		all[start:].shown()
	}
	return all
}

// rest resets the current values of limiters, which do not add up over time.
func (f *family) rest() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, sum := range f.sums {
		for i := range sum {
			if !rises(&sum[i]) {
				sum[i].Value = 0
			}
		}
	}
}

// present adds a current limiter: its counts since the last read, and its current values.
func (f *family) present(key string, l *limiter.Limiter) {
	label, now := f.take(key, l)
	f.mu.Lock()
	defer f.mu.Unlock()
	sum := f.sum(key, label, now)
	sum.count(now, f.last[l])
	sum.hold(now)
	f.last[l] = now
}

// evicted adds the counts of an evicted limiter since the last read.
func (f *family) evicted(key string, lim any) {
	l := lim.(*limiter.Limiter)
	f.mu.Lock()
	last := f.last[l]
	delete(f.last, l)
	f.mu.Unlock()
	label, now := f.take(key, l)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sum(key, label, now).count(now, last)
}

// take returns a limiter's samples and the label of its key. Both calls run user code, so f must
// not be locked.
func (f *family) take(key string, l *limiter.Limiter) (label string, now samples) {
	label = key
	if key != limiter.Overflow {
		label = clean(f.cfg.Label(key))
	}
	stats := l.Stats()
	stats.Demand *= float64(stats.Limit) // demand in slots, which can be added up
	return label, limiterSamples(label, stats, allKinds(stats))
}

// sum returns the sum for a key, and creates it if MaxLabels permits one more.
func (f *family) sum(key, label string, like samples) samples {
	if key != limiter.Overflow && f.sums[label] == nil && len(f.sums) >= f.cfg.MaxLabels+f.reserved() {
		label = other
	}
	if f.sums[label] == nil {
		f.sums[label] = like.zero(label)
	}
	return f.sums[label]
}

// zero returns samples with the label key and without values.
func (s samples) zero(key string) samples {
	z := slices.Clone(s)
	for i := range z {
		z[i].Labels = slices.Clone(z[i].Labels)
		z[i].Labels[0] = key
		z[i].Value, z[i].Counts = 0, make([]uint64, len(z[i].Counts))
	}
	return z
}

// shown turns a copy of a sum into the result of Read.
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
		s[i].Counts = slices.Clone(s[i].Counts)
	}
}

// rises reports whether a sample is cumulative.
func rises(s *Sample) bool {
	kind := limiterMetrics[s.Metric].Kind
	return kind == Counter || kind == Histogram
}

// count adds the counts of one limiter since last; nil: since the limiter was created.
func (s samples) count(now, last samples) {
	for i := range s {
		sum, n := &s[i], &now[i]
		if !rises(n) {
			continue
		}
		var before Sample
		if last != nil {
			before = last[i]
		}
		sum.Value += n.Value - before.Value // the difference is never negative, even after rounding
		for j, c := range n.Counts {
			if before.Counts != nil {
				c -= before.Counts[j]
			}
			sum.Counts[j] += c
		}
	}
}

// hold adds the current values of one limiter.
func (s samples) hold(now samples) {
	for i := range s {
		sum, n := &s[i], &now[i]
		switch {
		case rises(n):
		case n.Metric == oldest:
			sum.Value = max(sum.Value, n.Value)
		default:
			sum.Value += n.Value
		}
	}
}

// reserved is the number of existing labels that do not count.
func (f *family) reserved() (n int) {
	for _, label := range []string{other, limiter.Overflow} {
		if f.sums[label] != nil {
			n++
		}
	}
	return n
}
