package app

import (
	"context"
	"log/slog"
	"strconv"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/cache/memory"
	"github.com/spillway-go/spillway/examples/patientapi/cache/redis"
)

// openCache opens the cache that the flags ask for; nil for none. It touches
// nothing outside the process, and its errors do not repeat the flag, which may
// hold a password.
func (c *Command) openCache() (patientapi.ClinicianCache, error) {
	switch c.Cache {
	case "none":
		return nil, nil
	case "memory":
		cache, err := memory.New(c.CacheTTL)
		if err != nil {
			return nil, usage(err)
		}
		return cache, nil
	}
	cache, err := redis.New(redis.Config{
		URL: c.Cache, TTL: c.CacheTTL,
		// Services of other people, sharing a Redis, have other clinicians.
		Prefix: redis.DefaultPrefix + strconv.FormatUint(c.Seed, 10) + ":",
	})
	if err != nil {
		return nil, usagef("cache is neither memory nor none: %w", err)
	}
	return cache, nil
}

// tryCache says so if the cache does not answer. The service starts all the same:
// it can do without.
func (c *Command) tryCache(ctx context.Context, cache patientapi.ClinicianCache, logger *slog.Logger) {
	far, ok := cache.(*redis.Cache)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.CacheTimeout)
	defer cancel()
	if err := far.Ping(ctx); err != nil {
		logger.Warn("the clinician cache does not answer; answers are partial until it does", "error", err)
	}
}
