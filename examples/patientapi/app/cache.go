package app

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/spillway-go/spillway/examples/patientapi/cache/memory"
	"github.com/spillway-go/spillway/examples/patientapi/cache/redis"
)

// openCache opens the cache that the flags ask for; nil for none. It touches
// nothing outside the process, and its errors do not repeat the flag, which may
// hold a password.
func (c *Command) openCache() (cache, error) {
	switch c.Cache.URL {
	case "none", "memory":
		if c.Cache.PasswordFile != "" {
			return nil, usagef("cache-password-file is for a Redis, and cache is %s", c.Cache.URL)
		}
	}
	switch c.Cache.URL {
	case "none":
		return nil, nil
	case "memory":
		cache, err := memory.New(c.Cache.TTL)
		if err != nil {
			return nil, usage(err)
		}
		return cache, nil
	}
	password, err := passwordIn("cache-password-file", c.Cache.PasswordFile)
	if err != nil {
		return nil, err
	}
	cache, err := redis.New(redis.Config{
		URL: c.Cache.URL, Password: password, TTL: c.Cache.TTL,
		// Services of other people, sharing a Redis, have other clinicians.
		Prefix: redis.DefaultPrefix + strconv.FormatUint(c.Store.Seed, 10) + ":",
	})
	if err != nil {
		return nil, usagef("cache is neither memory nor none: %w", err)
	}
	return cache, nil
}

// tryCache says so if the cache does not answer. The service starts all the same:
// it can do without.
func (c *Command) tryCache(ctx context.Context, cache cache, logger *slog.Logger) {
	far, ok := cache.(*redis.Cache)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.Cache.Timeout)
	defer cancel()
	if err := far.Ping(ctx); err != nil {
		logger.Warn("the clinician cache does not answer; answers are partial until it does", "error", err)
	}
}
