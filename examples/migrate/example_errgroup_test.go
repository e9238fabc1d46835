package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/fanout"
)

// page is what several sources answer together.
type page struct {
	patient string
	visits  int
}

func countVisits(context.Context, int) (int, error) { return 0, errors.New("connection refused") }

// One source must answer; without the other the page is shown all the same.
func Example_errgroup() {
	load, err := fanout.New(fanout.Config{}, // once, at start: it learns
		fanout.Required("patient", lookUp, func(p *page, name string) { p.patient = name }),
		fanout.Optional("visits", countVisits, func(p *page, n int) { p.visits = n }).Within(50*time.Millisecond),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	got, err := load.Do(context.Background(), 42)
	fmt.Println(got.Value.patient, got.Missing[0].Branch, err)
	// Output: patient 42 visits <nil>
}
