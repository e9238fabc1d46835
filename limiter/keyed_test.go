package limiter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

func keyedBy(t testing.TB, cfg KeyedConfig) *Keyed {
	t.Helper()
	k, err := NewKeyed(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func family(t testing.TB, keys int) *Keyed {
	t.Helper()
	return keyedBy(t, KeyedConfig{MaxKeys: keys, New: func(string) Config { return Config{Law: limit.NewFixed(2)} }})
}

func keysOf(k *Keyed) string {
	var all []string
	for key := range k.All() {
		all = append(all, key)
	}
	return strings.Join(all, " ")
}

func nothing(context.Context) error { return nil }

func TestEachKeyHasALimiterOfItsOwn(t *testing.T) {
	k := family(t, 0)
	for _, key := range []string{"a", "b", "a"} {
		if err := k.Do(t.Context(), key, nothing); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]uint64{}
	for key, s := range k.All() {
		got[key] = s.Completed
		if s.Name != key {
			t.Errorf("the limiter of %q is called %q", key, s.Name)
		}
	}
	if len(got) != 2 || got["a"] != 2 || got["b"] != 1 {
		t.Fatalf("%v", got)
	}
}

func TestTheLeastRecentlyUsedIdleLimiterMakesRoom(t *testing.T) {
	k := family(t, 2)
	for _, key := range []string{"a", "b", "a", "c"} {
		_ = k.Do(t.Context(), key, nothing)
	}
	if got := keysOf(k); got != "c a" {
		t.Fatalf("kept %q", got)
	}
}

func TestALimiterWithWorkIsNeverForgottenAndOtherKeysShareOne(t *testing.T) {
	k := family(t, 2)
	a, _ := k.Get("a")
	permit := acquire(t, a) // via Get: the family does not know of the permit
	_ = k.Do(t.Context(), "b", func(context.Context) error {
		for i := range 50 {
			if err := k.Do(t.Context(), fmt.Sprint("new", i), nothing); err != nil {
				t.Fatal(err)
			}
		}
		return nil
	})
	stats := maps.Collect(k.All())
	if len(stats) != 3 || stats[Overflow].Completed != 50 || stats["a"].InFlight != 1 || stats["b"].Completed != 1 {
		t.Fatalf("%v", stats)
	}
	permit.Done(nil)
	_ = k.Do(t.Context(), "c", nothing)
	if got := keysOf(k); !strings.HasPrefix(got, "c ") || strings.Count(got, " ") != 2 {
		t.Fatalf("an idle limiter did not make room: %q", got)
	}
}

// A caller that invents keys may use the key of the shared limiter. Regression: there were two
// limiters with the key, and metrics added the counts of one again and again.
func TestTheKeyOfTheSharedLimiterIsNoKeyOfItsOwn(t *testing.T) {
	k := family(t, 1)
	if err := k.Do(t.Context(), Overflow, nothing); err != nil {
		t.Fatal(err)
	}
	p, err := k.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	for _, key := range []string{"b", Overflow} { // there is no room
		if err := k.Do(t.Context(), key, nothing); err != nil {
			t.Fatal(err)
		}
	}
	lim, err := k.Get(Overflow)
	if err != nil || keysOf(k) != "a "+Overflow || lim.Stats().Completed != 3 {
		t.Errorf("%v, %d, %v", keysOf(k), lim.Stats().Completed, err)
	}
}

func TestALimiterInUseStaysAlsoWhereItDoesNotCount(t *testing.T) {
	k := keyedBy(t, KeyedConfig{MaxKeys: 1, New: func(string) Config { return Config{Mode: Off} }})
	_ = k.Do(t.Context(), "a", func(context.Context) error {
		_ = k.Do(t.Context(), "b", nothing)
		if got := keysOf(k); got != "a "+Overflow {
			t.Fatalf("%q", got)
		}
		return nil
	})
}

func TestAKeyWhoseConfigurationIsWrongSaysSo(t *testing.T) {
	k := keyedBy(t, KeyedConfig{New: func(string) Config { return Config{MaxWait: -1} }})
	if err := k.Do(t.Context(), "a", nothing); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Fatal(err)
	}
	if _, err := NewKeyed(KeyedConfig{MaxKeys: -1}); err == nil {
		t.Fatal("a negative bound")
	}
}

func TestDrainingAFamilyClosesAllIntakesAndWaitsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := family(t, 0)
		for i := range 3 {
			go func() {
				_ = k.Do(t.Context(), fmt.Sprint(i), func(context.Context) error {
					time.Sleep(time.Duration(i+1) * time.Second)
					return nil
				})
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		d, _ := errors.AsType[*spillway.DrainError](k.Drain(ctx))
		if d == nil || d.Running != 1 || d.Dropped != 0 {
			t.Fatalf("%+v", d)
		}
		for _, key := range []string{"0", "later"} {
			if err := k.Do(t.Context(), key, nothing); reason(err) != spillway.ReasonDraining {
				t.Fatalf("%s: %v", key, err)
			}
		}
		if err := k.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		k.Close()
		if err := k.Do(t.Context(), "much later", nothing); reason(err) != spillway.ReasonClosed {
			t.Fatal(err)
		}
	})
}

// Callers that use new keys at the same time find the same free place.
func TestManyNewKeysAtOnceDoNotExceedTheMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		k := keyedBy(t, KeyedConfig{MaxKeys: 2, New: func(string) Config { <-gate; return Config{} }})
		for i := range 20 {
			go func() {
				_ = k.Do(t.Context(), string(rune('a'+i)), func(context.Context) error { time.Sleep(time.Second); return nil })
			}()
		}
		synctest.Wait()
		close(gate)
		synctest.Wait()
		var admitted uint64
		keys := 0
		for _, s := range k.All() {
			keys++
			admitted += s.Offered
		}
		if keys != 3 || admitted != 20 {
			t.Errorf("%d limiters for 2 keys and the shared one, which saw %d of 20", keys, admitted)
		}
		time.Sleep(time.Minute)
	})
}

// A permit keeps the limiter of its key in the family, as Do does.
func TestAPermitOfAKeyKeepsItsLimiter(t *testing.T) {
	k := family(t, 1)
	p, err := k.AcquireWith(t.Context(), "a", Request{Priority: spillway.High, Cost: 3})
	if err != nil {
		t.Fatal(err)
	}
	_ = k.Do(t.Context(), "b", nothing) // there is no room for it
	a, err := k.Get("a")
	if err != nil || a.Stats().InFlight != 3 {
		t.Errorf("of the work of 3 slots the limiter knows %d, %v", a.Stats().InFlight, err)
	}
	p.Done(nil)
	_ = k.Do(t.Context(), "b", nothing)
	if _, ok := k.of["a"]; ok {
		t.Error("idle, and still in the way")
	}
}

// A kind takes kilobytes, and a family has many keys. What does not end still has its kind.
func TestTheLimitersOfAFamilyCountAllKindsTogether(t *testing.T) {
	k := keyedBy(t, KeyedConfig{New: func(string) Config { return Config{} }})
	for i := range 50 {
		p, err := k.Acquire(spillway.WithKind(t.Context(), strconv.Itoa(i%5)), "a")
		if err != nil {
			t.Fatal(err)
		}
		p.Done(nil)
	}
	held, err := k.Acquire(spillway.WithKind(t.Context(), "GET /"), "a")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range k.All() {
		if len(s.ByKind) != 1 || s.ByKind[""].Ended[limit.Success] != 50 || s.OldestKind != "GET /" {
			t.Errorf("%+v, the oldest is of kind %q", s.ByKind, s.OldestKind)
		}
	}
	held.Done(nil)
}
