package clusterlimit

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/clusterlimit/internal/budget"
)

// Config selects the budget and the terms of joining it. The zero value joins the budget "default"
// of the engine on this machine, with the totals that other members have set.
type Config struct {
	// URL is the engine's address: a NATS server with JetStream, or several servers, separated by
	// commas. Empty means nats://127.0.0.1:4222.
	URL string
	// Options are TLS, credentials and the like, for the member's connection. The connection is tried
	// again for ever, whatever Options say.
	Options []nats.Option

	// Name is the budget's name; empty means "default". Use letters, digits and -_=./ only, at most
	// 200, and no dot at an end or beside another.
	Name string

	// Concurrency is how many admissions may run at a time, and Rate how many are admitted in a
	// second, in the whole budget. Zero means the number that other members have set, or no bound
	// if none has. The latest member to join with a number sets it for all. At most a billion.
	Concurrency, Rate int

	// Lease is how long a lease lasts; zero means 3 s, the minimum is 300 ms. The member renews it
	// six times in that time, or three times if the budget has more than 40 members, in a request
	// that may take a third of it. A dead member leaves its share unused for 1.25 times as long. A
	// restarted member is a new member.
	Lease time.Duration
	// FailClosed admits nothing once the lease has ended and the engine cannot be reached. Without
	// FailClosed the member continues with its last lease. The equal share is the total divided by
	// the last known number of members. A lease above the equal share shrinks to it over four times
	// Lease. Only then does a lease below the equal share grow to it.
	FailClosed bool

	// Logger logs changes of the member's standing; nil means no log.
	Logger *slog.Logger
}

const (
	defaultLease = 3 * time.Second
	leastLease   = 300 * time.Millisecond
	joinTime     = 5 * time.Second // without an answer, if the context of Join has no deadline
	mostLease    = budget.MostTTL
	idLetters    = 12 // of a member's random ID, 60 bits: all members of a group read and write all IDs
	renewals     = 6  // in the time of a lease
	visitPart    = 4  // of a lease: a renewal, a visit and the pause between take less than a lease
	attempts     = 3  // successive failed attempts that fit in the time of a lease
	fadeLeases   = 4
	wantLeases   = 2 // how many leases a member's demand lasts after its last request: as long as a turn
)

var validName = regexp.MustCompile(`^[-/_=.a-zA-Z0-9]{1,200}$`)

// check returns the configuration with its defaults, or all its faults.
func (cfg Config) check() (Config, error) {
	var wrong []error
	fault := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("clusterlimit: "+format, args...))
	}
	cfg.URL = cmp.Or(cfg.URL, nats.DefaultURL)
	if cfg.Name = cmp.Or(cfg.Name, "default"); !validName.MatchString(cfg.Name) || slices.Contains(strings.Split(cfg.Name, "."), "") {
		fault("Name is %.40q: use letters, digits and -_=./, 200 at most, and no dot at an end or beside another", cfg.Name)
	}
	if cfg.Concurrency < 0 || cfg.Concurrency > 1e9 {
		fault("Concurrency is %d: use 1 to 1e9, or zero for what the others have set", cfg.Concurrency)
	}
	if cfg.Rate < 0 || cfg.Rate > 1e9 {
		fault("Rate is %d: use 1 to 1e9 a second, or zero for what the others have set", cfg.Rate)
	}
	if cfg.Lease = cmp.Or(cfg.Lease, defaultLease); cfg.Lease < leastLease || cfg.Lease > mostLease {
		fault("Lease is %v: use %v to %v, or zero for %v", cfg.Lease, leastLease, mostLease, defaultLease)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg, errors.Join(wrong...)
}

// Join makes this process a member of a budget and returns once the member has a lease. The lease
// may be empty until other members have renewed theirs. While other members are faster, Join tries
// again until ctx ends. Join does not wait for an unreachable engine. For an engine that does not
// answer, Join waits until the deadline of ctx, or five seconds if ctx has none. The error says what
// was in the way. The caller decides whether to start without a budget. The member has one goroutine
// until Close.
func Join(ctx context.Context, cfg Config) (*Member, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("clusterlimit: cannot join %q: %w", cfg.Name, err)
	}
	m := newMember(cfg)
	if m.conn, err = connect(ctx, cfg); err != nil {
		return nil, fmt.Errorf("clusterlimit: %w", err)
	}
	if err := m.first(ctx); err != nil {
		m.disconnect()
		return nil, fmt.Errorf("clusterlimit: cannot join %q: %w", cfg.Name, err)
	}
	m.begin()
	return m, nil
}

// newMember returns a member that has not joined yet.
func newMember(cfg Config) *Member {
	m := &Member{
		cfg: cfg, base: time.Now(), done: make(chan struct{}), id: rand.Text()[:idLetters],
		causes: causesOf(cfg.Name), full: map[string]bool{}, orphans: map[string]*orphan{},
	}
	m.holder = budget.NewHolder(budget.Terms{
		ID: m.id, Totals: m.totals(),
		TTL: cfg.Lease, Fade: fadeLeases * cfg.Lease, Keep: !cfg.FailClosed,
	})
	return m
}

// begin starts the goroutine that renews the lease.
func (m *Member) begin() {
	running, stop := context.WithCancel(context.Background())
	m.stop = stop
	go m.run(running)
}
