package routes

import (
	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/experiment"
)

// Experiment is the declaration.
var Experiment = experiment.Legacy(claims.R.ID, claims.R.Title, "", func(struct{}) (experiment.Plan, error) {
	return Classic{Config: Defaults()}.Plan()
}, nil, Classic{}.Judge)
