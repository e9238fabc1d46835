package metricsprom

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/limiter"
)

// KeyedConfig says how a family of limiters is shown.
type KeyedConfig struct {
	// Name is the value of the label limiter, the same for the whole family. It
	// must differ from the names of other limiters and families in the registry.
	Name   string
	Family *limiter.Keyed

	// Label returns the value of the label key for a key of the family, such as
	// the plan of a tenant. Limiters with the same value are shown as one. Nil means the
	// key itself. Whatever it is, it is cut after 128 bytes, and what is not UTF-8
	// is replaced.
	Label func(key string) string

	// MaxLabels bounds how many values the label ever has, beside "(other)" and the
	// family's shared "(overflow)". The first ones that a scrape sees keep theirs
	// as long as the collector lives; all later ones are shown as "(other)". Zero
	// means 100.
	MaxLabels int
}

const (
	defaultMaxLabels = 100
	other            = "(other)"
)

// keyed remembers what was counted, so that a series never falls when the family
// forgets a limiter to make room for another key.
type keyed struct {
	cfg  KeyedConfig
	desc *limiterDescs

	mu   sync.Mutex
	sums map[string]row // by label, never forgotten
	last map[string]row // by key, of the limiters that were there at the last scrape
}

// NewKeyed returns a collector over a family of limiters: one series of each
// metric for each value of the label key. Counters go on when the family forgets
// a limiter; what that one counted after the last scrape is lost. The error says which
// setting is wrong.
func NewKeyed(cfg KeyedConfig) (prometheus.Collector, error) {
	switch {
	case cfg.Family == nil:
		return nil, errors.New("metricsprom: NewKeyed needs a Family")
	case cfg.MaxLabels < 0:
		return nil, fmt.Errorf("metricsprom: MaxLabels is %d: it cannot be negative (zero means %d)", cfg.MaxLabels, defaultMaxLabels)
	}
	cfg.MaxLabels = cmp.Or(cfg.MaxLabels, defaultMaxLabels)
	if cfg.Label == nil {
		cfg.Label = func(key string) string { return key }
	}
	return &keyed{cfg: cfg, desc: describeLimiter(clean(cfg.Name)), sums: map[string]row{}}, nil
}

func (k *keyed) Describe(ch chan<- *prometheus.Desc) { k.desc.describe(ch) }

func (k *keyed) Collect(ch chan<- prometheus.Metric) {
	k.mu.Lock()
	defer k.mu.Unlock()
	pictures, seen := map[string]picture{}, map[string]row{}
	for key, stats := range k.cfg.Family.All() {
		now := pictureOf(stats)
		label := k.label(key)
		sum := k.sums[label]
		if sum == nil {
			sum = make(row, len(now.counted))
			k.sums[label] = sum
		}
		sum.grow(now.counted, k.last[key])
		seen[key] = now.counted
		p, ok := pictures[label]
		if !ok {
			p.modes = map[limiter.Mode]int{}
		}
		p.join(now)
		pictures[label] = p
	}
	k.last = seen
	for label, sum := range k.sums { // also of limiters that are gone
		p := pictures[label]
		p.counted = sum
		k.desc.show(ch, label, p)
	}
}

// label returns the value under which a key is shown.
func (k *keyed) label(key string) string {
	if key == limiter.Overflow {
		return key
	}
	label := clean(k.cfg.Label(key))
	if k.sums[label] == nil && len(k.sums) >= k.cfg.MaxLabels+k.reserved() {
		return other
	}
	return label
}

// reserved is how many of the labels do not count.
func (k *keyed) reserved() (n int) {
	for _, label := range []string{other, limiter.Overflow} {
		if k.sums[label] != nil {
			n++
		}
	}
	return n
}
