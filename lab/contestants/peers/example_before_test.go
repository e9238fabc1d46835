package peers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/alitto/pond/v2"
	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/panjf2000/ants/v2"
	"github.com/platinummonkey/go-concurrency-limits/core"
	"github.com/platinummonkey/go-concurrency-limits/limit"
	limits "github.com/platinummonkey/go-concurrency-limits/limiter"
	"github.com/platinummonkey/go-concurrency-limits/strategy"
	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

// The code that the pages of docs/migrate begin with. What they end with is in
// examples/migrate.

func send(_ context.Context, to string) error {
	fmt.Println("sent to", to)
	return nil
}

func lookUp(_ context.Context, id int) (string, error) { return fmt.Sprint("patient ", id), nil }

func query(context.Context) error { return nil }

func Example_ants() {
	pool, err := ants.NewPool(20, ants.WithNonblocking(true))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	err = pool.Submit(func() {
		if err := send(ctx, "ann@example.org"); err != nil {
			fmt.Println("not sent:", err)
		}
	})
	if errors.Is(err, ants.ErrPoolOverload) {
		fmt.Println("later")
	}
	if err := pool.ReleaseTimeout(10 * time.Second); err != nil {
		fmt.Println(err)
	}
	// Output: sent to ann@example.org
}

func Example_pond() {
	pool := pond.NewPool(10)
	names := pond.NewResultPool[string](10)
	ctx := context.Background()

	name, err := names.SubmitErr(func() (string, error) { return lookUp(ctx, 42) }).Wait()
	fmt.Println(name, err)

	group := pool.NewGroup()
	for _, to := range []string{"ann", "bob"} {
		group.SubmitErr(func() error { return send(ctx, to) })
	}
	fmt.Println(group.Wait())
	pool.StopAndWait()
	names.StopAndWait()
	// Unordered output:
	// patient 42 <nil>
	// sent to ann
	// sent to bob
	// <nil>
}

func Example_conc() {
	p := pool.NewWithResults[string]().WithMaxGoroutines(8).WithContext(context.Background()).WithCancelOnError()
	for _, id := range []int{1, 2, 3} {
		p.Go(func(ctx context.Context) (string, error) { return lookUp(ctx, id) })
	}
	names, err := p.Wait()
	fmt.Println(len(names), err)
	// Output: 3 <nil>
}

func Example_errgroup() {
	var patient string
	var visits int
	group, ctx := errgroup.WithContext(context.Background())
	group.Go(func() (err error) { patient, err = lookUp(ctx, 42); return err })
	group.Go(func() (err error) { visits, err = countVisits(ctx, 42); return err })
	err := group.Wait() // one error, and the page is not shown
	fmt.Println(patient, visits, err)
	// Output: patient 42 0 connection refused
}

func countVisits(context.Context, int) (int, error) { return 0, errors.New("connection refused") }

func Example_semaphore() {
	slots := semaphore.NewWeighted(8)
	work := func(ctx context.Context) error {
		if err := slots.Acquire(ctx, 1); err != nil {
			return err
		}
		defer slots.Release(1)
		return query(ctx)
	}
	fmt.Println(work(context.Background()))
	// Output: <nil>
}

func Example_failsafe() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "no orders") })

	adaptive := adaptivelimiter.NewWithDefaults[*http.Response]()
	handler := failsafehttp.NewHandler(mux, adaptive)

	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/orders", nil))
	fmt.Println(w.Code)
	// Output: 200
}

func Example_limits() {
	lim, err := limits.NewDefaultLimiterWithDefaults("database",
		strategy.NewSimpleStrategy(10), limit.NoopLimitLogger{}, core.EmptyMetricRegistryInstance)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	listener, ok := lim.Acquire(ctx)
	if !ok {
		fmt.Println("busy")
		return
	}
	switch err := query(ctx); {
	case err == nil:
		listener.OnSuccess()
	case errors.Is(err, context.DeadlineExceeded):
		listener.OnDropped()
	default:
		listener.OnIgnore()
	}
	fmt.Println(lim.EstimatedLimit() > 0)
	// Output: true
}
