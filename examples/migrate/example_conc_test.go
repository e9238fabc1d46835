package migrate_test

import (
	"context"
	"fmt"

	"github.com/spillway-go/spillway/fanout"
)

// One thing done to every element, eight at a time.
func Example_conc() {
	names, err := fanout.Map(context.Background(), fanout.MapConfig{Limit: 8}, []int{1, 2, 3}, lookUp)
	fmt.Println(names, err)
	// Output: [patient 1 patient 2 patient 3] <nil>
}
