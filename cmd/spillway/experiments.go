package main

import (
	"fmt"
	"maps"
	"strings"

	"github.com/spillway-go/spillway/lab/burst"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/durable"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/fan"
	"github.com/spillway-go/spillway/lab/ladder"
	"github.com/spillway-go/spillway/lab/load"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/patterns"
	"github.com/spillway-go/spillway/lab/pools"
	"github.com/spillway-go/spillway/lab/reuse"
	"github.com/spillway-go/spillway/lab/routes"
	"github.com/spillway-go/spillway/lab/shapes"
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
	overload.Saturation,
	overload.Admission,
	pools.Experiment,
	reuse.Experiment,
	overload.Stories,
	load.Experiment,
	overload.Databases,
	overload.Mixes,
	durable.Experiment,
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
		known = append(known, e.ID)
	}
	return nil, fmt.Errorf("unknown experiment %q: there are %s, and spillway lab --help says what they are", id, strings.Join(known, ", "))
}
