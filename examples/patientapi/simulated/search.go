package simulated

import (
	"context"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// card is what a search compares of one patient.
type card struct {
	identifiers   []patientapi.Identifier
	given, family string // folded
	birth         string
	updated       int64 // seconds since 1970
}

// drawer is how many cards are made at one time: all of them would keep the first
// search waiting, and one that ends early needs few.
const drawer = 1024

// cards makes those of the patients from first to last.
func cards(gen patientapi.Generator, first, last int) []card {
	made := make([]card, 0, last-first+1)
	var p patientapi.Patient
	for n := first; n <= last; n++ {
		gen.Patient(n, &p)
		made = append(made, card{
			slices.Clone(p.Identifiers), patientapi.FoldName(p.Name.Given), patientapi.FoldName(p.Name.Family), p.BirthDate, p.Updated.Unix(),
		})
	}
	return made
}

// Search implements patientapi.Store. It looks at one card after the other.
func (s *Store) Search(ctx context.Context, q patientapi.PatientSearch, dst *patientapi.Page) error {
	dst.Clear()
	ids, after, err := q.Numbers()
	if err != nil {
		return err
	}
	size := q.PageSize()
	for n := range s.matching(ctx, q, ids, after) {
		if len(dst.Patients) == size {
			dst.More = true
			return nil
		}
		s.gen.Patient(n, dst.Next())
	}
	if err := ctx.Err(); err != nil {
		dst.Clear()
		return err
	}
	return nil
}

// Count implements patientapi.Store.
func (s *Store) Count(ctx context.Context, q patientapi.PatientSearch) (count int, err error) {
	q.After = ""
	ids, after, err := q.Numbers()
	if err != nil {
		return 0, err
	}
	for range s.matching(ctx, q, ids, after) {
		count++
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return count, nil
}

// matching yields the numbers, in order, of the patients for whom all conditions hold, until
// ctx ends.
func (s *Store) matching(ctx context.Context, q patientapi.PatientSearch, ids []int, after int) func(yield func(int) bool) {
	wanted := conditions(q)
	return func(yield func(int) bool) {
		for n := range s.candidates(ids, q.IDs == nil, after) {
			if ctx.Err() != nil {
				return
			}
			if len(wanted) > 0 {
				c := &s.cards[(n-1)/drawer]()[(n-1)%drawer]
				if slices.ContainsFunc(wanted, func(holds func(*card) bool) bool { return !holds(c) }) {
					continue
				}
			}
			if !yield(n) {
				return
			}
		}
	}
}

// candidates yields the numbers after that one in order: those of ids, or all.
func (s *Store) candidates(ids []int, all bool, after int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		if all {
			for n := after + 1; n <= s.patients && yield(n); n++ {
			}
			return
		}
		slices.Sort(ids)
		for _, n := range slices.Compact(ids) {
			if n > after && n >= 1 && n <= s.patients && !yield(n) {
				return
			}
		}
	}
}

// conditions returns those of q that are set, but for the ids.
func conditions(q patientapi.PatientSearch) (set []func(*card) bool) {
	for _, one := range q.Every() {
		if id := one.Identifier; id != (patientapi.Identifier{}) {
			set = append(set, func(c *card) bool {
				return slices.ContainsFunc(c.identifiers, func(have patientapi.Identifier) bool {
					return (id.Value == "" || id.Value == have.Value) && (id.System == "" || id.System == have.System)
				})
			})
		}
		if one.Name != "" {
			prefix := patientapi.FoldName(one.Name)
			set = append(set, func(c *card) bool { return strings.HasPrefix(c.given, prefix) || strings.HasPrefix(c.family, prefix) })
		}
	}
	if first := q.Birth.First; first != "" {
		set = append(set, func(c *card) bool { return c.birth >= first })
	}
	if last := q.Birth.Last; last != "" {
		set = append(set, func(c *card) bool { return c.birth <= last })
	}
	if q.Updated != (patientapi.Times{}) {
		since, before := q.Updated.Seconds()
		set = append(set, func(c *card) bool { return since <= c.updated && c.updated < before })
	}
	return set
}
