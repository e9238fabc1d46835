package retrybudget_test

import (
	"errors"
	"fmt"

	"github.com/spillway-go/spillway/retrybudget"
)

// A dependency goes down. Ten requests are tried twice, then the retries stop.
func Example() {
	budget, err := retrybudget.New(retrybudget.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	attempts := 0
	call := func() error { attempts++; return errors.New("connection refused") }
	for range 100 {
		err := call()
		if err != nil && budget.TryTake() {
			err = call()
		}
		if err == nil {
			budget.Success()
		}
	}
	fmt.Println(attempts)
	// Output: 110
}
