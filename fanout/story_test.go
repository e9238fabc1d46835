package fanout

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
)

// published is a rewrite of the parallel lookup as it was published: the cache in a goroutine, the
// database in the caller, a deferred wait. The tests below show its faults, each beside the
// behavior of this package.
func published(database, cache source) (users []string, err error) {
	var fromCache []string
	var guard sync.Mutex // added: shows the fault without a data race
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		found, err := cache.ask(context.Background(), "")
		if err != nil {
			return // the error is swallowed
		}
		guard.Lock()
		fromCache = found
		guard.Unlock()
	})
	fromDatabase, err := database.ask(context.Background(), "")
	if err != nil {
		return nil, err
	}
	join := func() []string {
		guard.Lock()
		defer guard.Unlock()
		merge(&users, fromDatabase)
		merge(&users, fromCache)
		return users
	}
	return join(), nil // evaluated before the deferred wait
}

func TestTheOldLookupLostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		database, cache := after(40*ms, nil, "ann"), after(50*ms, nil, "eve")
		began := time.Now()
		users, _ := published(database, cache)
		if elapsed := time.Since(began); elapsed != 50*ms || slices.Contains(users, "eve") {
			t.Errorf("the published code returned %v after %v: it should have waited for the cache and lost its answer", users, elapsed)
		}
		began = time.Now()
		got, err := newLookup(t, Config{}, database, cache).Do(t.Context(), "")
		if elapsed := time.Since(began); elapsed != 50*ms || !slices.Equal(got.Value, []string{"ann", "eve"}) || err != nil {
			t.Errorf("%v, %v after %v", got.Value, err, elapsed)
		}
	})
}

func TestTheOldLookupWaitedFiveSecondsForACacheItNoLongerNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		database, cache := after(0, errDown), deaf(5*time.Second)
		began := time.Now()
		_, err := published(database, cache)
		if elapsed := time.Since(began); elapsed != 5*time.Second || err != errDown {
			t.Errorf("the published code: %v after %v", err, elapsed)
		}
		began = time.Now()
		_, err = newLookup(t, Config{}, database, cache).Do(t.Context(), "")
		if elapsed := time.Since(began); elapsed != 0 || !errors.Is(err, errDown) {
			t.Errorf("%v after %v", err, elapsed)
		}
		time.Sleep(5 * time.Second) // the cache ends, if it was started
	})
}

func TestTheOldLookupSwallowedTheCachesError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		database, cache := after(0, nil, "ann"), after(0, errDown)
		if users, err := published(database, cache); err != nil || !slices.Equal(users, []string{"ann"}) {
			t.Errorf("the published code: %v, %v: nothing tells this from a whole answer", users, err)
		}
		got, err := newLookup(t, Config{}, database, cache).Do(t.Context(), "")
		if err != nil || !slices.Equal(got.MissingNames(), []string{"cache"}) || got.Missing[0].Err != errDown {
			t.Errorf("missing %v, %v", got.Missing, err)
		}
	})
}

func TestTheOldLookupDiedOfABranchsPanic(t *testing.T) {
	const marker = "SPILLWAY_TEST_OLD_LOOKUP_PANICS"
	if os.Getenv(marker) != "" {
		synctest.Test(t, func(*testing.T) { _, _ = published(after(0, nil, "ann"), panics(0)) })
		return
	}
	self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	self.Env = append(os.Environ(), marker+"=1")
	if out, err := self.CombinedOutput(); err == nil || !strings.Contains(string(out), "panic: nil map") {
		t.Errorf("the published code survived: %v\n%s", err, out)
	}
	synctest.Test(t, func(t *testing.T) {
		got, err := newLookup(t, Config{}, after(0, nil, "ann"), panics(0)).Do(t.Context(), "")
		if err != nil || !slices.Equal(got.Value, []string{"ann"}) {
			t.Errorf("%v, %v", got.Value, err)
		}
		if _, ok := errors.AsType[*spillway.PanicError](got.Missing[0].Err); !ok {
			t.Error(got.Missing)
		}
	})
}
