package limit

import (
	"maps"
	"slices"
	"testing"
)

// subject is a law of ours: each says what it does.
type subject interface {
	Law
	Reporter
}

// contestant is a law under the conformance suite.
type contestant struct {
	build func() subject
	// ignores says that the law does not move at all.
	ignores bool
	// passive says that the limit is not enforced: what runs does not follow it.
	passive bool
}

// laws is every law there is; all pass the same exam.
var laws = map[string]contestant{
	"fixed":     {build: func() subject { return NewFixed(7) }, ignores: true},
	"aimd":      {build: func() subject { return must(NewAIMD(AIMDConfig{})) }},
	"vegas":     {build: func() subject { return must(NewVegas(VegasConfig{})) }},
	"gradient2": {build: func() subject { return must(NewGradient2(Gradient2Config{})) }},
	"passive":   {build: func() subject { return NewPassive() }, passive: true},
	"adaptive":  {build: func() subject { return NewAdaptive() }},
	"jobs":      {build: func() subject { return NewAdaptiveForThroughput() }},
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
		if got := NewFixed(n).Limit(); got != 1 {
			t.Errorf("NewFixed(%d).Limit() = %d, want 1", n, got)
		}
	}
}
