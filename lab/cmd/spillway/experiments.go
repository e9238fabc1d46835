package main

import (
	"fmt"
	"maps"
	"strings"

	"github.com/spillway-go/spillway/lab/admission"
	"github.com/spillway-go/spillway/lab/budget"
	"github.com/spillway-go/spillway/lab/burst"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/db"
	"github.com/spillway-go/spillway/lab/durable"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/fan"
	"github.com/spillway-go/spillway/lab/fleet"
	"github.com/spillway-go/spillway/lab/ladder"
	"github.com/spillway-go/spillway/lab/load"
	"github.com/spillway-go/spillway/lab/mixes"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/patterns"
	"github.com/spillway-go/spillway/lab/pools"
	"github.com/spillway-go/spillway/lab/reuse"
	"github.com/spillway-go/spillway/lab/routes"
	"github.com/spillway-go/spillway/lab/saturation"
	"github.com/spillway-go/spillway/lab/shapes"
	"github.com/spillway-go/spillway/lab/stories"
)

// experiments is every experiment, in the order of the help.
var experiments = []*experiment.Experiment{
	patterns.Experiment,
	shapes.Experiment,
	ladder.Experiment,
	burst.Experiment,
	fan.Experiment,
	routes.Experiment,
	overload.Experiment,
	saturation.Experiment,
	admission.Experiment,
	pools.Experiment,
	reuse.Experiment,
	stories.Experiment,
	load.Experiment,
	db.Experiment,
	mixes.Experiment,
	durable.Experiment,
	budget.Experiment,
	fleet.Experiment,
}

// roles are the contestants that this program plays itself.
func roles() map[string]contestant.Role {
	all := map[string]contestant.Role{}
	for _, e := range experiments {
		maps.Copy(all, e.Roles)
	}
	return all
}

func find(id string) (*experiment.Experiment, error) {
	var known []string
	for _, e := range experiments {
		if strings.EqualFold(e.ID, id) {
			return e, nil
		}
		known = append(known, fmt.Sprintf("%s (%s)", e.ID, e.Title))
	}
	return nil, fmt.Errorf("unknown experiment %q: known are %s", id, strings.Join(known, ", "))
}
