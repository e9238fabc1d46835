package ladder

import (
	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/experiment"
)

// Experiment is the declaration.
var Experiment = experiment.Legacy(claims.Ladder.ID, claims.Ladder.Title, "", func(struct{}) (experiment.Plan, error) {
	return Classic{Config: Defaults()}.Plan()
}, nil, Classic{}.Judge)
