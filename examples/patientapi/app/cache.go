package app

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"strings"

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
	password := ""
	if c.Cache.PasswordFile != "" {
		text, err := os.ReadFile(c.Cache.PasswordFile)
		if err != nil {
			return nil, usagef("cache-password-file: %w", err)
		}
		if password = strings.TrimRight(string(text), "\r\n"); password == "" {
			return nil, usagef("cache-password-file %s is empty", c.Cache.PasswordFile)
		}
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

// hidesPassword is an error if the command line, which every user of the machine
// can read, holds the password of the Redis. It cannot be taken back from there.
func (c *Command) hidesPassword(commandLine []string) error {
	at := strings.LastIndex(c.Cache.URL, "@")
	_, login, isURL := strings.Cut(c.Cache.URL[:max(at, 0)], "://")
	if _, password, _ := strings.Cut(login, ":"); !isURL || password == "" {
		return nil
	}
	for _, arg := range commandLine {
		if strings.Contains(arg, c.Cache.URL) {
			return usagef("the password of the Redis is on the command line, where every user of this machine sees it: " +
				"set SPILLWAY_CACHE to the URL instead of --cache, or give --cache-password-file")
		}
	}
	return nil
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
