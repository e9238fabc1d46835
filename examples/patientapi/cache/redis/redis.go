// Package redis caches clinicians in a Redis that several services may share.
//
// What is kept about people is in the values alone, under a time to live; keys
// are hashes, because Redis shows keys in its slow log and to whoever lists them.
package redis

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	client "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// DefaultPrefix begins every key. The number changes with the form of the
// values, so that two versions of the service can share a Redis.
const DefaultPrefix = "patientapi:clinicians:1:"

// Bounds for callers whose context has a later deadline or none. The URL may say
// otherwise (dial_timeout and so on).
const (
	dialTimeout = 250 * time.Millisecond
	ioTimeout   = 250 * time.Millisecond
)

// ErrURL reports a URL that does not name a Redis. It does not repeat the URL,
// which may hold a password.
var ErrURL = errors.New("not the URL of a Redis: want redis://[user:password@]host[:port][/database], or rediss:// with TLS")

// Config says where a cache is and how long it keeps what.
type Config struct {
	URL      string
	Password string        // if set, instead of that in the URL
	Prefix   string        // of keys; empty means DefaultPrefix
	TTL      time.Duration // of an answer, from when it was kept; more than 0
}

// Cache is a directory.ClinicianCache in Redis. Every call ends with its
// context's deadline, or after some hundred milliseconds. A cancelled context
// frees nobody who waits for an answer before that.
type Cache struct {
	client *client.Client
	prefix string
	ttl    time.Duration
}

// New returns a cache. It does not connect yet: a Redis that is down is an error
// of the calls, until it is up. Errors match ErrURL, or say that the time to live
// is wrong.
func New(cfg Config) (*Cache, error) {
	if cfg.TTL < time.Millisecond {
		return nil, fmt.Errorf("redis: a time to live of %v: want 1ms or more", cfg.TTL)
	}
	if !strings.HasPrefix(cfg.URL, "redis://") && !strings.HasPrefix(cfg.URL, "rediss://") {
		return nil, ErrURL
	}
	opts, err := client.ParseURL(cfg.URL)
	if err != nil {
		return nil, ErrURL
	}
	for _, d := range []struct {
		value   *time.Duration
		without time.Duration
	}{{&opts.DialTimeout, dialTimeout}, {&opts.ReadTimeout, ioTimeout}, {&opts.WriteTimeout, ioTimeout}, {&opts.PoolTimeout, ioTimeout}} {
		if *d.value == 0 {
			*d.value = d.without
		}
	}
	opts.Password = cmp.Or(cfg.Password, opts.Password)
	opts.ContextTimeoutEnabled = true
	// A cache that has to be asked twice is slower than the database.
	opts.MaxRetries, opts.DialerRetries = -1, 1
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	opts.DisableIdentity = true
	// The client would write a line to stderr for each failed connection. Its
	// callers get the same as an error, and log less.
	logging.Disable()
	return &Cache{client: client.NewClient(opts), prefix: cmp.Or(cfg.Prefix, DefaultPrefix), ttl: cfg.TTL}, nil
}

// key is where the answer to q is kept. The zero byte is in no address.
func (c *Cache) key(q patientapi.ClinicianQuery) string {
	sum := sha256.Sum256([]byte(q.Email + "\x00" + q.Organisation))
	return c.prefix + hex.EncodeToString(sum[:])
}

// Clinicians implements directory.ClinicianCache. A value that it cannot read is
// an error once: it is removed.
func (c *Cache) Clinicians(ctx context.Context, q patientapi.ClinicianQuery) ([]patientapi.Clinician, error) {
	key := c.key(q)
	value, err := c.client.Get(ctx, key).Bytes()
	switch {
	case errors.Is(err, client.Nil):
		return nil, nil
	case err != nil:
		return nil, failed(ctx, err)
	}
	var found []patientapi.Clinician
	if json.Unmarshal(value, &found) != nil { // its error would quote the value
		_ = c.client.Del(ctx, key).Err()
		return nil, errors.New("redis: a value is not a list of clinicians; removed")
	}
	return found, nil
}

// Keep implements directory.ClinicianCache.
func (c *Cache) Keep(ctx context.Context, q patientapi.ClinicianQuery, found []patientapi.Clinician) error {
	value, err := json.Marshal(found)
	if err != nil {
		return err
	}
	return failed(ctx, c.client.Set(ctx, c.key(q), value, c.ttl).Err())
}

// Ping reports whether Redis answers.
func (c *Cache) Ping(ctx context.Context) error { return failed(ctx, c.client.Ping(ctx).Err()) }

// Close implements io.Closer.
func (c *Cache) Close() error { return c.client.Close() }

// failed makes the error of a call: the context's, if that is why. Of what Redis
// says it keeps the first word, the code: the rest may quote the command.
func failed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	// The connection's timer, set to the same time, may be the first to fire.
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		return context.DeadlineExceeded
	}
	if said, ok := errors.AsType[client.Error](err); ok {
		code, _, _ := strings.Cut(said.Error(), " ")
		return fmt.Errorf("redis: replied %s", code)
	}
	return fmt.Errorf("redis: %w", err)
}
