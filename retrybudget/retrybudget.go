// Package retrybudget bounds extra attempts by what succeeds: retries and hedges
// are paid for with tokens, and only successes earn new ones. While a dependency
// works there is enough for the occasional second attempt; while it is down
// nothing is earned, and the extra load ends by itself.
//
// Between any two moments with s successes between them, at most Burst + Ratio*s
// extra attempts are granted. No clock is involved, so that a budget means the
// same at one request a minute and at a million a second.
package retrybudget

import (
	"cmp"
	"fmt"
	"math"
	"sync/atomic"
)

// Config says how much is earned and how much can be saved. The zero value works.
type Config struct {
	// Ratio is how many tokens one success earns, above 0 up to 1: 0.1 allows one
	// extra attempt for ten successes. It is rounded to a millionth, at least one.
	// Zero means 0.1.
	Ratio float64
	// Burst is how many tokens can be saved, and how many there are at first, so
	// that a program that starts may try again. Zero means 10; it cannot be
	// negative.
	Burst int
}

// one token, in the unit that is counted. Integers, so that a long run earns
// exactly what was promised.
const one = 1_000_000

const (
	defaultRatio = 0.1
	defaultBurst = 10
	maxBurst     = 1 << 30
)

// Budget is a number of tokens. It is safe for concurrent use, takes no lock and
// allocates nothing. Create it with New: the zero Budget grants nothing, ever. It
// must not be copied.
type Budget struct {
	earn, most int64
	tokens     atomic.Int64
}

// New returns a full budget. The error says which field is wrong.
func New(cfg Config) (*Budget, error) {
	ratio, burst := cmp.Or(cfg.Ratio, defaultRatio), cmp.Or(cfg.Burst, defaultBurst)
	switch {
	case !(ratio > 0 && ratio <= 1):
		return nil, fmt.Errorf("retrybudget: Ratio is %v: use more than 0, up to 1 (zero means %v)", cfg.Ratio, defaultRatio)
	case burst < 0 || burst > maxBurst:
		return nil, fmt.Errorf("retrybudget: Burst is %d: use 1 to %d (zero means %d)", cfg.Burst, maxBurst, defaultBurst)
	}
	b := &Budget{earn: max(1, int64(math.Round(ratio*one))), most: int64(burst) * one}
	b.tokens.Store(b.most)
	return b, nil
}

// Success earns Ratio of a token, up to Burst. Call it once for each request that
// succeeded, however many attempts it took.
func (b *Budget) Success() {
	for {
		had := b.tokens.Load()
		if had == b.most {
			return
		}
		if b.tokens.CompareAndSwap(had, min(had+b.earn, b.most)) {
			return
		}
	}
}

// TryTake takes one token for an extra attempt. False: there is not a whole one,
// and the attempt should not be made. It never waits.
func (b *Budget) TryTake() bool {
	for {
		had := b.tokens.Load()
		if had < one {
			return false
		}
		if b.tokens.CompareAndSwap(had, had-one) {
			return true
		}
	}
}

// Ratio returns how many tokens one success earns.
func (b *Budget) Ratio() float64 { return float64(b.earn) / one }

// Tokens returns how many tokens there are now, with the fraction.
func (b *Budget) Tokens() float64 { return float64(b.tokens.Load()) / one }
