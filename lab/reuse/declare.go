package reuse

import (
	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/experiment"
)

// Experiment is the declaration.
var Experiment = experiment.Legacy(claims.Reuse.ID, claims.Reuse.Title, "", func(struct{}) (experiment.Plan, error) {
	return Classic{Config: Defaults()}.Plan()
}, Roles(), Classic{}.Judge)
