package loadgen

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Part is a kind of request in a Mix.
type Part struct {
	// Class names the part in results. Parts may share a class, such as a priority.
	Class  string
	Weight float64 // share of the requests, relative to the other weights
	Target Target
}

// classed is a Target whose requests belong to classes.
type classed interface {
	names() []string
	class(n uint64) uint16 // index of the class of request n
}

type mix struct {
	parts   []mixPart
	classes []string
	seed    uint64
}

type mixPart struct {
	target Target
	class  uint16
	upTo   float64 // share of the requests, plus the shares of the parts before
}

// Mix returns a Target that sends each request to one of several targets, drawn by weight. The same
// seed sends the same requests to the same parts. Results report the outcomes of each class.
func Mix(seed uint64, parts ...Part) (Target, error) {
	m := &mix{seed: seed}
	total := 0.0
	for _, p := range parts {
		if !(p.Weight > 0 && p.Weight <= 1e9) || p.Target == nil || p.Class == "" {
			return nil, fmt.Errorf("loadgen: part %q of a mix: want a class, a target, and a weight above 0, not %v", p.Class, p.Weight)
		}
		total += p.Weight
	}
	if len(parts) == 0 || len(parts) > math.MaxUint16 {
		return nil, fmt.Errorf("loadgen: a mix of %d parts: want 1 to %d", len(parts), math.MaxUint16)
	}
	sum := 0.0
	for _, p := range parts {
		class := slices.Index(m.classes, p.Class)
		if class < 0 {
			class, m.classes = len(m.classes), append(m.classes, p.Class)
		}
		sum += p.Weight
		m.parts = append(m.parts, mixPart{p.Target, uint16(class), sum / total})
	}
	return m, nil
}

// Do sends request n to its part.
func (m *mix) Do(ctx context.Context, n uint64) Outcome { return m.part(n).target.Do(ctx, n) }

func (m *mix) names() []string       { return m.classes }
func (m *mix) class(n uint64) uint16 { return m.part(n).class }

// part returns the part of request n, a function of the seed and n alone.
func (m *mix) part(n uint64) *mixPart {
	x := float64(scramble(m.seed, n)>>11) / (1 << 53)
	for i := range m.parts {
		if x < m.parts[i].upTo {
			return &m.parts[i]
		}
	}
	return &m.parts[len(m.parts)-1]
}
