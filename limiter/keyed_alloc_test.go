package limiter

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/spillway-go/spillway/limit"
)

// A family may have a hundred thousand keys, most of which seldom have work. So what a key takes is bounded, by what
// the key has gone through. "go test ./limiter -run AllocsOfKeys -v" prints the bytes.
func TestAllocsOfKeys(t *testing.T) {
	const keys = 2000
	names := make([]string, keys)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	for law, most := range map[string]struct{ fresh, first, refused int }{
		"fixed":    {1980, 2640, 7700}, // a tenth of it for the race detector beside other programs
		"adaptive": {4620, 5610, 10890},
	} {
		k, err := NewKeyed(KeyedConfig{MaxKeys: keys, New: func(string) (cfg Config) {
			if law == "fixed" {
				cfg.Law = limit.NewFixed(1)
			}
			return cfg
		}})
		if err != nil {
			t.Fatal(err)
		}
		took := 0
		each := func(what string, most int, f func(key string)) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for _, key := range names {
				f(key)
			}
			runtime.ReadMemStats(&after)
			took += int(after.TotalAlloc-before.TotalAlloc) / keys
			if t.Logf("%s, %s: %d bytes a key", law, what, took); took > most {
				t.Errorf("%s, %s: %d bytes a key, want at most %d", law, what, took, most)
			}
		}
		each("fresh", most.fresh, func(key string) {
			if _, err := k.Get(key); err != nil {
				t.Fatal(err)
			}
		})
		each("after its first request", most.first, func(key string) {
			p, err := k.Acquire(context.Background(), key)
			if err != nil {
				t.Fatal(err)
			}
			p.Done(nil)
		})
		each("after a refusal", most.refused, func(key string) {
			cost := 1
			if law == "adaptive" {
				cost = 100
			}
			p, err := k.AcquireWith(context.Background(), key, Request{Cost: cost})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := k.AcquireWith(context.Background(), key, Request{noWait: true}); err == nil {
				t.Fatal("not refused")
			}
			p.Done(nil)
		})
	}
}

// What a queue takes, once for a limiter, with the goroutine that waits.
func TestAllocsOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limiters = 200
		var all [limiters]*Limiter
		var held [limiters]Permit
		for i := range all {
			all[i] = fixed(t, 1, 1)
			held[i] = acquire(t, all[i])
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for _, l := range all {
			go func() { acquire(t, l).Done(nil) }()
		}
		synctest.Wait()
		for i := range held {
			held[i].Done(nil)
		}
		synctest.Wait()
		runtime.ReadMemStats(&after)
		took := int(after.TotalAlloc-before.TotalAlloc) / limiters
		if t.Logf("%d bytes", took); took > 4000 {
			t.Errorf("%d bytes for a queue, want at most 4000", took)
		}
	})
}

// Limiters share what stands for no observer and for no history. If one limiter changed it, all would.
func TestMain(m *testing.M) {
	code := m.Run()
	if !reflect.ValueOf(nobody).IsZero() || !reflect.ValueOf(noHistory).IsZero() {
		fmt.Println("FAIL: a limiter has changed what all limiters share")
		code = 1
	}
	os.Exit(code)
}
