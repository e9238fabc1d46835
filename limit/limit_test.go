package limit

import (
	"maps"
	"slices"
	"testing"
)

// subject is a law of this package; each one is a Reporter.
type subject interface {
	Law
	Reporter
}

// contestant is a law under the conformance suite.
type contestant struct {
	build func() subject
	// ignores is set if the limit of the law never changes.
	ignores bool
	// passive is set if the limit is not enforced, so the work in flight does not follow it.
	passive bool
}

// laws is every law of the package; all laws pass the same tests.
var laws = map[string]contestant{
	"fixed":     {build: func() subject { return newFixed(7) }, ignores: true},
	"aimd":      {build: func() subject { return must(newAIMD(AIMDConfig{})) }},
	"gradient2": {build: func() subject { return must(newGradient2(Gradient2Config{})) }},
	"passive":   {build: func() subject { return newPassive() }, passive: true},
	"adaptive":  {build: func() subject { return newAdaptive(forLatency) }},
	"jobs":      {build: func() subject { return newAdaptive(forJobs) }},
}

func must[L Law](law L, err error) L {
	if err != nil {
		panic(err)
	}
	return law
}

func eachLaw(t *testing.T, f func(t *testing.T, c contestant)) {
	for _, name := range slices.Sorted(maps.Keys(laws)) {
		t.Run(name, func(t *testing.T) { f(t, laws[name]) })
	}
}

func TestFixedNeverGoesBelowOne(t *testing.T) {
	for _, n := range []int{-5, 0, 1} {
		if got := newFixed(n).Limit(); got != 1 {
			t.Errorf("newFixed(%d).Limit() = %d, want 1", n, got)
		}
	}
}
