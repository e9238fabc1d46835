package migrate_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
)

// Acquire, work, and tell the limiter how it went: Do is all of it.
func Example_limits() {
	lim, err := limiter.New(limiter.Config{Name: "database"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = lim.Do(context.Background(), query)
	if errors.Is(err, spillway.ErrRejected) {
		fmt.Println("busy:", err)
	}
	fmt.Println(lim.Stats().Completed)
	// Output: 1
}
