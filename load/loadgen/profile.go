package loadgen

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Leg is a part of a load: the rate goes evenly from one value to another, in
// requests a second. Legs one after the other make a ramp, steps, a burst, or on
// and off; a leg from 0 to 0 is a pause.
type Leg struct {
	From, To float64
	For      time.Duration
}

// Steady returns a leg of one rate.
func Steady(rate float64, d time.Duration) Leg { return Leg{rate, rate, d} }

// Repeat returns the legs again and again until they last for d; the last leg may be cut short.
func Repeat(d time.Duration, legs ...Leg) []Leg {
	var all []Leg
	for round := 0; d > 0 && (len(all) > 0 || round == 0); round++ {
		for _, leg := range legs {
			if d > 0 && leg.For > 0 {
				cut := leg.cut(min(leg.For, d))
				all, d = append(all, cut), d-cut.For
			}
		}
	}
	return all
}

// ParseLegs reads legs with commas between them: RATE:TIME, or FROM-TO:TIME for a
// ramp, such as 100:10s,100-500:30s,0:5s.
func ParseLegs(s string) ([]Leg, error) {
	var legs []Leg
	for part := range strings.SplitSeq(s, ",") {
		leg, ok := parseLeg(strings.TrimSpace(part))
		if !ok {
			return nil, fmt.Errorf("loadgen: %.60q in a profile: want RATE:TIME or FROM-TO:TIME with requests a second, such as 100:10s,100-500:30s", part)
		}
		legs = append(legs, leg)
	}
	if err := newProfile(legs, 0, false).check(); err != nil {
		return nil, err
	}
	return legs, nil
}

func parseLeg(s string) (leg Leg, ok bool) {
	rates, length, ok := strings.Cut(s, ":")
	if !ok {
		return leg, false
	}
	from, to, ramp := strings.Cut(rates, "-")
	if !ramp {
		to = from
	}
	var errs [3]error
	leg.From, errs[0] = strconv.ParseFloat(strings.TrimSpace(from), 64)
	leg.To, errs[1] = strconv.ParseFloat(strings.TrimSpace(to), 64)
	leg.For, errs[2] = time.ParseDuration(strings.TrimSpace(length))
	return leg, errors.Join(errs[:]...) == nil
}

// cut returns the first part of the leg.
func (l Leg) cut(d time.Duration) Leg {
	if d < l.For {
		l.To = l.From + (l.To-l.From)*float64(d)/float64(l.For)
		l.For = d
	}
	return l
}

// count returns how many requests are due at the leg's end, counted from its start.
func (l Leg) count() float64 { return (l.From + l.To) / 2 * l.For.Seconds() }

// when is the inverse of count: it returns how long after the leg's start x requests are due.
func (l Leg) when(x float64) time.Duration {
	if x <= 0 {
		return 0
	}
	slope := (l.To - l.From) / l.For.Seconds()
	// The root of From·t + slope·t²/2 = x, in a form that works for a slope of 0.
	root := math.Sqrt(max(0, l.From*l.From+2*slope*x))
	return min(time.Duration(math.Round(2*x/(l.From+root)*1e9)), l.For)
}

// Even spaces requests evenly by the rate of the legs: request n starts when the integral of the
// rate reaches n. At is linear in the number of legs.
func Even(legs ...Leg) Schedule { return newProfile(legs, 0, false) }

// Random starts requests like independent callers whose number follows the legs: a
// Poisson process of changing rate. The same seed gives the same schedule. At(n) is
// O(n); [Times] and Run walk the schedule at O(1) a request.
func Random(seed uint64, legs ...Leg) Schedule { return newProfile(legs, seed, true) }

type profile struct {
	legs   []Leg
	length time.Duration
	random bool
	seed   uint64
}

func newProfile(legs []Leg, seed uint64, random bool) *profile {
	p := &profile{legs: slices.Clone(legs), random: random, seed: seed}
	for _, leg := range legs {
		p.length += leg.For
	}
	return p
}

func (p *profile) check() error {
	total := 0.0
	var length time.Duration
	for _, leg := range p.legs {
		if !(min(leg.From, leg.To) >= 0 && max(leg.From, leg.To) <= 1e9) {
			return fmt.Errorf("loadgen: a rate from %v to %v: want requests per second, from 0 to 1e9", leg.From, leg.To)
		}
		if leg.For <= 0 || leg.For > maxProfile-length {
			return fmt.Errorf("loadgen: a leg of %v: want more than 0, and less than %v for all legs", leg.For, maxProfile)
		}
		length += leg.For
		total += leg.count()
	}
	if total == 0 {
		return errors.New("loadgen: a profile without requests: want a rate above 0 in some leg")
	}
	return nil
}

const maxProfile = 10_000 * time.Hour

func (p *profile) At(n uint64) (time.Duration, bool) {
	if !p.random {
		return p.cursor()(float64(n))
	}
	next := p.walk()
	for range n {
		if _, ok := next(); !ok {
			break
		}
	}
	return next()
}

func (p *profile) walk() func() (time.Duration, bool) {
	due := p.cursor()
	if !p.random {
		n := uint64(0)
		return func() (time.Duration, bool) {
			n++
			return due(float64(n - 1))
		}
	}
	random := rand.New(rand.NewPCG(p.seed, 0x70726f66696c65))
	x := 0.0
	return func() (time.Duration, bool) {
		x += random.ExpFloat64()
		return due(x)
	}
}

// cursor returns a function that returns when x requests are due. x must not fall from call to
// call.
func (p *profile) cursor() func(x float64) (time.Duration, bool) {
	i, before, start := 0, 0.0, time.Duration(0) // current leg; requests and time before it
	var at time.Duration
	return func(x float64) (time.Duration, bool) {
		for ; i < len(p.legs); i++ {
			leg := p.legs[i]
			count := leg.count()
			if x < before+count {
				at = max(at, start+leg.when(x-before)) // rounding must not go back
				return at, true
			}
			before += count
			start += leg.For
		}
		return p.length, false
	}
}
