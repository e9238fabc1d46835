package token

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

const (
	maxSet       = 256 << 10        // bytes of a key set
	fetchTimeout = 5 * time.Second  // to get one
	period       = 5 * time.Minute  // between two looks at it
	unknownPause = 15 * time.Second // the least between looks because of keys that are not in it
)

// Keys are public keys that tokens are verified by, from a file or a URL. They are safe
// for concurrent use.
type Keys struct {
	read   func(context.Context) ([]byte, error)
	logger *slog.Logger
	now    atomic.Pointer[set]
	stale  atomic.Bool // the last look has found no keys

	turn   chan struct{} // a lock that can be waited for under a context; guards looked
	looked time.Time     // when the keys were last read
}

// Open reads the JSON Web Key Set at a location: an https URL, an http URL of this
// machine, or a file. What changes there is noticed by Watch, and when a token asks for a
// key that is not known yet. Nothing is started. A nil logger means that nothing is
// logged.
func Open(ctx context.Context, location string, logger *slog.Logger) (*Keys, error) {
	read, err := reader(location)
	if err != nil {
		return nil, err
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	k := &Keys{read: read, logger: logger, turn: make(chan struct{}, 1), looked: time.Now()}
	if err := k.load(ctx); err != nil {
		return nil, fmt.Errorf("the keys to verify tokens with: %w", err)
	}
	return k, nil
}

// fixed returns the keys of a text that never changes.
func fixed(text []byte) (*Keys, error) {
	k := &Keys{read: func(context.Context) ([]byte, error) { return text, nil }, logger: slog.New(slog.DiscardHandler), turn: make(chan struct{}, 1)}
	return k, k.load(context.Background())
}

// Watch looks for changes every few minutes, until ctx ends. When it cannot look, or finds
// no key that is good for tokens, the keys stay as they are: a set without any is a fault
// of its issuer, and without keys no token would be good. A key that is not among others
// any longer is gone.
func (k *Keys) Watch(ctx context.Context) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.look(ctx, 0)
		case <-ctx.Done():
			return
		}
	}
}

// find returns the key of that id, and the generation of keys it is of. One that is not
// known is looked for, now and then.
func (k *Keys) find(ctx context.Context, id string) (found key, ok bool, generation uint64) {
	s := k.now.Load()
	if found, ok = s.keys[id]; !ok {
		k.look(ctx, unknownPause)
		s = k.now.Load()
		found, ok = s.keys[id]
	}
	return found, ok, s.generation
}

// generation changes with the keys.
func (k *Keys) generation() uint64 { return k.now.Load().generation }

// look reads the keys again, unless that was done within pause. Of several calls at one
// time one reads, and the others wait for it.
func (k *Keys) look(ctx context.Context, pause time.Duration) {
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return
	}
	if time.Since(k.looked) < pause {
		return
	}
	// A caller who leaves does not spoil it for those who wait.
	err := k.load(context.WithoutCancel(ctx))
	k.stale.Store(err != nil)
	if err != nil {
		k.logger.Error("the keys to verify tokens with cannot be read; those known so far stay", "error", err)
	}
	k.looked = time.Now()
}

// Stale reports whether the last look has failed, so that the keys are those of an earlier
// one.
func (k *Keys) Stale() bool { return k.stale.Load() }

func (k *Keys) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	text, err := k.read(ctx)
	if err != nil {
		return err
	}
	var generation uint64
	if old := k.now.Load(); old != nil {
		if old.text == string(text) {
			return nil
		}
		generation = old.generation + 1
	}
	keys, err := parseSet(text)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		return fmt.Errorf("no key to verify tokens with: want one of RSA with %d bits or more, or of EC with P-256, with a kid", minRSABits)
	}
	k.now.Store(&set{generation, string(text), keys})
	k.logger.Info("keys to verify tokens with", "keys", len(keys))
	return nil
}

// reader returns what reads the text at a location.
func reader(location string) (func(context.Context) ([]byte, error), error) {
	kind, _, isURL := strings.Cut(location, "://")
	if !isURL {
		return func(context.Context) ([]byte, error) { return readFile(location) }, nil
	}
	u, err := url.Parse(location)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return nil, fmt.Errorf("the keys' URL is not one like https://issuer.example/jwks.json, without a password")
	case kind != "https" && (kind != "http" || !loopback(u.Hostname())):
		return nil, fmt.Errorf("keys are read from a file, by https, or by http from this machine alone: whoever is on the way could replace them")
	}
	client := &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context) ([]byte, error) { return fetch(ctx, client, location) }, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return bounded(f)
}

func fetch(ctx context.Context, client *http.Client, location string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, location, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := client.Do(req)
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // without the URL, which may hold a key of its own
	}
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %d, want 200", resp.StatusCode)
	}
	return bounded(resp.Body)
}

func bounded(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxSet+1))
	if err == nil && len(text) > maxSet {
		return nil, fmt.Errorf("more than %d KiB of keys", maxSet>>10)
	}
	return text, err
}
