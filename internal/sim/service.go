package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spillway-go/spillway/histogram"
)

// Distribution draws the work of a call: the time that the call takes alone at full speed. A
// negative draw counts as zero.
type Distribution interface {
	Draw(r *rand.Rand) time.Duration
	Mean() time.Duration
}

// Fixed returns the same time for every call.
func Fixed(d time.Duration) Distribution {
	if d <= 0 {
		return wrong{fmt.Errorf("Fixed(%v): use a positive time", d)}
	}
	return fixed(d)
}

type fixed time.Duration

func (f fixed) Draw(*rand.Rand) time.Duration { return time.Duration(f) }
func (f fixed) Mean() time.Duration           { return time.Duration(f) }

// Uniform is uniformly distributed from low to high.
func Uniform(low, high time.Duration) Distribution {
	if low < 0 || high <= low {
		return wrong{fmt.Errorf("Uniform(%v, %v): the second must be the longer one, and the first not negative", low, high)}
	}
	return uniform{low, high}
}

type uniform struct{ low, high time.Duration }

func (u uniform) Draw(r *rand.Rand) time.Duration {
	return time.Duration(float64(u.low) + float64(u.high-u.low)*r.Float64())
}
func (u uniform) Mean() time.Duration { return (u.low + u.high) / 2 }

// Exponential is the exponential distribution, which has no memory: the standard assumption of
// queueing theory.
func Exponential(mean time.Duration) Distribution {
	if mean <= 0 {
		return wrong{fmt.Errorf("Exponential(%v): use a positive mean", mean)}
	}
	return exponential(mean)
}

type exponential time.Duration

func (e exponential) Draw(r *rand.Rand) time.Duration {
	return time.Duration(float64(e) * r.ExpFloat64())
}
func (e exponential) Mean() time.Duration { return time.Duration(e) }

// LogNormal is the log-normal distribution, which has a long tail. sigma is the standard deviation
// of the logarithm. With a sigma of 1.2, the 99 % quantile is eight times the mean.
func LogNormal(mean time.Duration, sigma float64) Distribution {
	if mean <= 0 || !positive(sigma) || sigma > 5 {
		return wrong{fmt.Errorf("LogNormal(%v, %v): use a positive mean, and a sigma above 0 and up to 5", mean, sigma)}
	}
	return logNormal{math.Log(float64(mean)) - sigma*sigma/2, sigma, mean}
}

type logNormal struct {
	mu, sigma float64
	mean      time.Duration
}

func (l logNormal) Draw(r *rand.Rand) time.Duration {
	return time.Duration(min(math.Exp(l.mu+l.sigma*r.NormFloat64()), 1e18))
}
func (l logNormal) Mean() time.Duration { return l.mean }

// Part is one distribution of a Mixture.
type Part struct {
	Share   float64 // relative to the other parts
	Service Distribution
}

// Mixture draws from one of several distributions, such as hits and misses of a
// cache.
func Mixture(parts ...Part) Distribution {
	m := mixture{parts: slices.Clone(parts)}
	for i, p := range parts {
		if !positive(p.Share) || p.Service == nil {
			return wrong{fmt.Errorf("Mixture: part %d has the share %v and the service %v: it needs a positive one and a distribution", i, p.Share, p.Service)}
		}
		if err := check(p.Service); err != nil {
			return wrong{fmt.Errorf("Mixture: part %d: %w", i, err)}
		}
		m.shares += p.Share
	}
	if len(parts) == 0 {
		return wrong{fmt.Errorf("Mixture: give it at least one Part")}
	}
	return m
}

type mixture struct {
	parts  []Part
	shares float64
}

func (m mixture) Draw(r *rand.Rand) time.Duration {
	u := r.Float64() * m.shares
	last := len(m.parts) - 1
	for _, p := range m.parts[:last] {
		if u -= p.Share; u < 0 {
			return p.Service.Draw(r)
		}
	}
	return m.parts[last].Service.Draw(r)
}

func (m mixture) Mean() time.Duration {
	sum := 0.0
	for _, p := range m.parts {
		sum += p.Share * float64(p.Service.Mean())
	}
	return time.Duration(sum / m.shares)
}

// Measured draws from a histogram of nanoseconds, such as the service times in a limiter's Stats.
// Measure in a quiet hour: under load the times include the backend's own queue, which the
// simulated backend adds again.
func Measured(h *histogram.Histogram) Distribution {
	if h == nil || h.Count() == 0 || h.Mean() < 1 {
		return wrong{fmt.Errorf("Measured: the histogram is empty, or holds zeros only")}
	}
	m := measured{mean: time.Duration(h.Mean()), quantiles: make([]int64, 1024)}
	for i := range m.quantiles {
		m.quantiles[i] = h.Quantile((float64(i) + 0.5) / float64(len(m.quantiles)))
	}
	return m
}

type measured struct {
	quantiles []int64
	mean      time.Duration
}

func (m measured) Draw(r *rand.Rand) time.Duration {
	return time.Duration(m.quantiles[r.IntN(len(m.quantiles))])
}
func (m measured) Mean() time.Duration { return m.mean }
