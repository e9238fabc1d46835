package redis

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	client "github.com/redis/go-redis/v9"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/cachetest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/redistest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

func open(t *testing.T, addr, prefix string) *Cache {
	t.Helper()
	c, err := New(Config{URL: "redis://" + addr + redistest.Patient, Prefix: prefix, TTL: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestCache(t *testing.T) {
	addr := redistest.Addr(t)
	cachetest.Run(t, open(t, addr, redistest.Prefix(t, addr)))
}

func TestEveryKeyExpiresAndNamesNobody(t *testing.T) {
	addr := redistest.Addr(t)
	prefix := redistest.Prefix(t, addr)
	c, behind := open(t, addr, prefix), redistest.Client(t, addr)
	for n := 1; n <= 20; n++ {
		require.NoError(t, c.Keep(t.Context(), cachetest.Query(n), cachetest.Found(n)))
	}
	keys, err := behind.Keys(t.Context(), prefix+"*").Result()
	if err != nil || len(keys) != 20 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	for _, key := range keys {
		if left, err := behind.PTTL(t.Context(), key).Result(); err != nil || left <= 0 || left > time.Minute {
			t.Errorf("a key lives for %v, %v", left, err)
		}
		if rest := strings.TrimPrefix(key, prefix); len(rest) != 64 || strings.Trim(rest, "0123456789abcdef") != "" {
			t.Errorf("a key shows more than a hash: %s", key)
		}
	}
}

func TestUnreadableValueIsAnErrorOnceAndIsNotQuoted(t *testing.T) {
	addr := redistest.Addr(t)
	c, behind := open(t, addr, redistest.Prefix(t, addr)), redistest.Client(t, addr)
	for _, value := range []string{`[{"email":"someone@org01.example"}`, `{"someone":1}`, "\x00", `["someone"]`} {
		require.NoError(t, behind.Set(t.Context(), c.key(cachetest.Query(1)), value, time.Minute).Err())
		_, err := c.Clinicians(t.Context(), cachetest.Query(1))
		if err == nil || strings.Contains(err.Error(), "someone") {
			t.Errorf("%q: %v", value, err)
		}
		if got, err := c.Clinicians(t.Context(), cachetest.Query(1)); err != nil || len(got) != 0 {
			t.Errorf("it is still there: %v, %v", got, err)
		}
	}
}

func TestWhatRedisRepliesIsCutToItsCode(t *testing.T) {
	addr := redistest.Addr(t)
	c, behind := open(t, addr, redistest.Prefix(t, addr)), redistest.Client(t, addr)
	require.NoError(t, behind.RPush(t.Context(), c.key(cachetest.Query(1)), "x").Err())
	if _, err := c.Clinicians(t.Context(), cachetest.Query(1)); err == nil || err.Error() != "redis: replied WRONGTYPE" {
		t.Errorf("got %v", err)
	}
}

func TestARedisThatIsAwayIsAnError(t *testing.T) {
	c := open(t, "127.0.0.1:1", "")
	_, err := c.Clinicians(t.Context(), cachetest.Query(1))
	for what, err := range map[string]error{"lookup": err, "keep": c.Keep(t.Context(), cachetest.Query(1), cachetest.Found(1)), "ping": c.Ping(t.Context())} {
		if err == nil || !strings.HasPrefix(err.Error(), "redis: ") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A Redis that takes connections and says nothing, in virtual time.
func TestRedisThatSaysNothingIsLeftAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Config{URL: "redis://nowhere", TTL: time.Minute})
		require.NoError(t, err)
		opts := *c.client.Options()
		opts.Dialer = func(context.Context, string, string) (net.Conn, error) {
			here, there := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, there) }()
			return here, nil
		}
		require.NoError(t, c.Close())
		c.client = client.NewClient(&opts)
		defer c.Close()
		for name, call := range map[string]func(context.Context) error{
			"lookup": func(ctx context.Context) error { _, err := c.Clinicians(ctx, cachetest.Query(1)); return err },
			"keep":   func(ctx context.Context) error { return c.Keep(ctx, cachetest.Query(1), cachetest.Found(1)) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			began := time.Now()
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 20*time.Millisecond {
				t.Errorf("%s with a deadline: %v after %v", name, err, time.Since(began))
			}
			cancel()
			began = time.Now()
			if err := call(t.Context()); err == nil || time.Since(began) < ioTimeout || time.Since(began) > 2*ioTimeout { // and some milliseconds of its client's own
				t.Errorf("%s without a deadline: %v after %v", name, err, time.Since(began))
			}
		}
	})
}

func TestWrongSettingsSaySoWithoutThePassword(t *testing.T) {
	for _, url := range []string{
		"", "127.0.0.1:6379", "http://:secret@127.0.0.1", "unix:///run/secret.sock", "redis://:secret@host:port", "redis://:secret@host/x",
		"redis://:secret@host?no_such_option=1", "redis://:sec%ret@host", "redis://a b:secret@host",
	} {
		_, err := New(Config{URL: url, TTL: time.Minute})
		if !errors.Is(err, ErrURL) || strings.Contains(err.Error(), "sec") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", url, err)
		}
	}
	if _, err := New(Config{URL: "redis://127.0.0.1"}); err == nil || !strings.Contains(err.Error(), "time to live") {
		t.Errorf("a time to live of nothing: %v", err)
	}
}

func FuzzKeysOfDifferentQuestionsDiffer(f *testing.F) {
	c, err := New(Config{URL: "redis://127.0.0.1:1", TTL: time.Minute})
	require.NoError(f, err)
	defer c.Close()
	f.Add("a@b", "cd", "a@bc", "d")
	f.Fuzz(func(t *testing.T, email, org, otherEmail, otherOrg string) {
		q, err := patientapi.NewClinicianQuery(email, org)
		other, otherErr := patientapi.NewClinicianQuery(otherEmail, otherOrg)
		if err == nil && otherErr == nil && (q == other) != (c.key(q) == c.key(other)) {
			t.Errorf("%q %q and %q %q", email, org, otherEmail, otherOrg)
		}
	})
}
