package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spillway-go/spillway/fanout"
)

type Query struct{ Email string }

type Answer struct{ Users []string }

// Add keeps each user once.
func (a *Answer) Add(users []string) {
	for _, u := range users {
		if !a.has(u) {
			a.Users = append(a.Users, u)
		}
	}
}

func (a *Answer) has(user string) bool {
	return slices.Contains(a.Users, user)
}

func inDatabase(context.Context, Query) ([]string, error) { return []string{"ann", "bob"}, nil }

func inCache(context.Context, Query) ([]string, error) { return nil, errors.New("connection refused") }

func Example() {
	// Make the Fanout once and keep it for the life of the program: it learns from every call.
	lookup, err := fanout.New(fanout.Config{},
		fanout.Required("database", inDatabase, (*Answer).Add),
		fanout.Optional("cache", inCache, (*Answer).Add).Within(20*time.Millisecond),
	)
	if err != nil {
		fmt.Println(err) // the configuration is wrong
		return
	}
	got, err := lookup.Do(context.Background(), Query{Email: "ann@example.org"})
	if err != nil {
		fmt.Println(err) // the database has failed
		return
	}
	fmt.Println(got.Value.Users)
	for _, m := range got.Missing {
		fmt.Println("without", m.Branch, "because:", m.Err)
	}
	// Output:
	// [ann bob]
	// without cache because: connection refused
}

// Branches may return different types; each branch has its own merge function.
func ExampleRequired() {
	type page struct {
		name   string
		orders int
	}
	profile := func(_ context.Context, id int) (string, error) { return fmt.Sprint("user ", id), nil }
	orders := func(context.Context, int) (int, error) { return 3, nil }

	f, err := fanout.New(fanout.Config{},
		fanout.Required("profile", profile, func(p *page, name string) { p.name = name }),
		fanout.Optional("orders", orders, func(p *page, n int) { p.orders = n }),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	got, err := f.Do(context.Background(), 7)
	fmt.Println(got.Value.name, got.Value.orders, got.Missing != nil, err)
	// Output: user 7 3 false <nil>
}

// A branch that is slow now and then and is idempotent can be hedged.
func ExampleBranch_Hedged() {
	f, err := fanout.New(fanout.Config{},
		fanout.Required("replica", inDatabase, (*Answer).Add).Hedged(nil),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	got, err := f.Do(context.Background(), Query{})
	fmt.Println(got.Value.Users, err)
	// Output: [ann bob] <nil>
}

// The zero MapConfig is bounded.
func ExampleMap() {
	length := func(_ context.Context, s string) (int, error) { return len(s), nil }
	lengths, err := fanout.Map(context.Background(), fanout.MapConfig{}, []string{"a", "bb", "ccc"}, length)
	fmt.Println(lengths, err)
	// Output: [1 2 3] <nil>
}

// CollectAll keeps the results of successful elements, and each error has the index of its element.
func ExampleMap_collectAll() {
	half := func(_ context.Context, n int) (int, error) {
		if n%2 != 0 {
			return 0, errors.New("odd")
		}
		return n / 2, nil
	}
	halves, err := fanout.Map(context.Background(), fanout.MapConfig{CollectAll: true}, []int{2, 3, 4, 5}, half)
	fmt.Println(halves)
	fmt.Println(err)
	// Output:
	// [1 0 2 0]
	// fanout: element 1: odd
	// fanout: element 3: odd
}

func ExampleSingleflight() {
	var users fanout.Singleflight[string, string]
	name, shared, err := users.Do(context.Background(), "ann@example.org", func(context.Context) (string, error) {
		return "Ann", nil
	})
	fmt.Println(name, shared, err)
	// Output: Ann false <nil>
}
