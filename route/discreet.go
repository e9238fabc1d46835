package route

import (
	"slices"

	"github.com/spillway-go/spillway/route/internal/shape"
)

// discreet removes text that a client chose from faults: names of unknown parameters and fields,
// and the part of a pointer after the last known member. Known names are those of the request type.
func discreet(p *shape.Plan, faults []Fault) []Fault {
	faults = slices.Clone(faults) // faults may belong to a variable of the user
	for i := range faults {
		f := &faults[i]
		if f.Parameter != "" && !p.KnowsParameter(f.In, f.Parameter) {
			f.Parameter = ""
		}
		f.Pointer = p.KnownPointer(f.Pointer)
	}
	return faults
}
