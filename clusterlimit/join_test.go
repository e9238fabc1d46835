package clusterlimit

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/internal/await"
)

// oddStore is a bucket that does something odd for some time.
type oddStore struct {
	*line
	end time.Time
	odd func(ctx context.Context) error
}

func (s *oddStore) now(ctx context.Context) error {
	if time.Now().Before(s.end) {
		return s.odd(ctx)
	}
	return nil
}

func (s *oddStore) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if err := s.now(ctx); err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
		return nil, err
	}
	return s.line.Get(ctx, key)
}

func (s *oddStore) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	if err := s.now(ctx); err != nil {
		return 0, err
	}
	return s.line.Create(ctx, key, value)
}

// Join said that the engine did not answer, although it did, and other members were faster.
func TestJoinWaitsForItsContextAndSaysWhatWasInTheWay(t *testing.T) {
	silence := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	beaten := func(context.Context) error { return jetstream.ErrKeyExists }
	refusal := errors.New("no permission")
	for name, c := range map[string]struct {
		odd    func(context.Context) error
		lasts  time.Duration
		within time.Duration // zero: no deadline
		says   string        // empty: it joins
		after  time.Duration // at least
	}{
		"others are faster for a minute":             {beaten, time.Minute, 2 * time.Minute, "", time.Minute},
		"others are faster, without a deadline":      {beaten, time.Minute, 0, "", time.Minute},
		"others are faster for ever":                 {beaten, time.Hour, time.Minute, "other members changed the budget first", time.Minute},
		"the engine is silent for half a minute":     {silence, 30 * time.Second, time.Minute, "", 30 * time.Second},
		"the engine is silent for ever":              {silence, time.Hour, time.Minute, "the engine has not answered for 1m0s", time.Minute},
		"the engine is silent, without a deadline":   {silence, time.Hour, 0, "the engine has not answered for", joinTime},
		"the engine refuses":                         {func(context.Context) error { return refusal }, time.Hour, time.Minute, "no permission", 0},
		"the engine has no time, without a deadline": {func(context.Context) error { return &jetstream.APIError{Code: 503, ErrorCode: codeNotNow} }, time.Hour, 0, "the engine has not answered for", joinTime},
		"the disk is full":                           {func(context.Context) error { return &jetstream.APIError{Code: 503, ErrorCode: 10077} }, time.Hour, time.Minute, "see its limits, its disk", time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg, err := Config{Concurrency: 3}.check()
				check(t, err)
				m := newMember(cfg)
				m.kv = &oddStore{&line{fakeStore: newFakeStore(2 * time.Millisecond)}, time.Now().Add(c.lasts), c.odd}
				ctx := t.Context()
				if c.within > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.within)
					defer cancel()
				}
				began := time.Now()
				err = m.first(ctx)
				if took := time.Since(began); took < c.after || took > c.after+2*cfg.Lease {
					t.Errorf("it took %v", took)
				}
				if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
					t.Errorf("%v, want %q", err, c.says)
				}
			})
		})
	}
}

// A budget that nobody uses any more gives all it has to those who come, although its groups have
// accounts.
func TestAFleetThatHasGoneLeavesNothingBehind(t *testing.T) {
	for name, end := range map[string]func(m *Member){"closed": func(m *Member) { _ = m.Close(context.Background()) }, "killed": (*Member).die} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{t: t, store: newFakeStore(2 * time.Millisecond), total: 1000}
				f.join(120, Config{Rate: f.total})
				f.run(10*time.Second, func() bool { return false })
				for _, m := range f.members {
					end(m.Member)
				}
				f.members = nil
				f.join(3, Config{})
				all := func(int, *fleetMember) bool { return true }
				settled := func() bool { // a member learns the number of members with the next visit of the root
					others := slices.ContainsFunc(f.members, func(m *fleetMember) bool { return m.Stats().Members != 3 })
					return !others && f.rate(all) == f.total
				}
				took := f.run(time.Minute, settled)
				t.Logf("all is leased again after %v, in %d groups", took, f.groups())
				if took >= time.Minute {
					t.Errorf("%d of %d", f.rate(all), f.total)
				}
				for _, m := range f.members {
					if s := m.Stats(); s.Members != 3 {
						t.Errorf("%d members", s.Members)
					}
					m.die()
				}
			})
		})
	}
}

// An error names what the login may not do, though the server is silent about it.
func TestJoinSaysWhatCannotSucceed(t *testing.T) {
	t.Parallel()
	o := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true}
	o.Users = []*server.User{{Username: "all"}, {Username: "less", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Deny: []string{"$KV.>"}}}}}
	url := start(t, o).ClientURL()
	join(t, Config{URL: url, Options: []nats.Option{nats.UserInfo("all", "")}, Concurrency: 3})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Join(ctx, Config{URL: url}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, pass := await.Deadline(t.Context())
	refused := nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) { pass() })
	if _, err := Join(ctx, Config{URL: url, Options: []nats.Option{nats.UserInfo("less", ""), refused}}); err == nil || !strings.Contains(err.Error(), "see the login's permissions") {
		t.Error(err)
	}
}
