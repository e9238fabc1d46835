// Package retrybudget bounds extra attempts by the number of successes. Each retry or hedge takes a
// token, and only successes earn new tokens. While a dependency works, there are enough tokens for
// the occasional second attempt. While the dependency is down, nothing is earned, and the extra
// load ends by itself.
//
// In any period with s successes, at most Burst + Ratio*s extra attempts are granted. No clock is
// involved, so a budget has the same effect at one request a minute and at a million a second. A
// benchmark measures what a call costs (go test ./retrybudget -run - -bench Budget).
//
// # Pitfalls
//
//   - Use one budget for each dependency. With one budget for all, a healthy dependency pays for
//     the outage of another.
//   - A budget does not wait between attempts. Package admissionhttp/client waits as long as the
//     server says.
//
// # When not to use it
//
// A batch job that may wait as long as it likes needs no budget.
package retrybudget

import (
	"cmp"
	"fmt"
	"math"
	"sync/atomic"
)

// Config sets how many tokens are earned and how many can be saved. The zero value works.
type Config struct {
	// Ratio is how many tokens one success earns, above 0 up to 1: 0.1 allows one
	// extra attempt for ten successes. Ratio is rounded to millionths, and to at least
	// one millionth. Zero means 0.1.
	Ratio float64
	// Burst is how many tokens can be saved. A new budget starts with Burst tokens, so
	// that a program may retry right after its start. Zero means 10; Burst cannot be
	// negative.
	Burst int
}

// one is a token in millionths of a token, the unit of all counts. Counts are
// integers, so that no rounding errors add up over a long run.
const one = 1_000_000

const (
	defaultRatio = 0.1
	defaultBurst = 10
	maxBurst     = 1 << 30
)

// Budget is a number of tokens. A Budget is safe for concurrent use, takes no lock and
// allocates nothing. Create a Budget with New: the zero Budget never grants anything. A
// Budget must not be copied.
type Budget struct {
	earn, most int64
	tokens     atomic.Int64
}

// New returns a full budget. The error names the field that is wrong.
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

// Success adds Ratio tokens, up to a total of Burst. Call Success once for each request
// that succeeded, however many attempts the request took.
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

// TryTake takes one token for an extra attempt. TryTake returns false if there is less
// than one token; then do not make the attempt. TryTake never waits.
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

// left is how many tokens there are now, including fractions.
func (b *Budget) left() float64 { return float64(b.tokens.Load()) / one }
