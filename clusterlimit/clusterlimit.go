// Package clusterlimit makes one budget of concurrency and rate out of the limits of many
// replicas. Ten replicas with a limit of 100 each admit 1,000; ten members of a budget of
// 100 admit 100.
//
//	member, err := clusterlimit.Join(ctx, clusterlimit.Config{URL: url, Name: "orders", Concurrency: 100})
//	if err != nil {
//		return err
//	}
//	defer member.Close(context.Background()) // its share is free at once
//	err = member.Bind(lim)                   // from now on lim admits its share at most
//
// Each member has a lease: so many slots, and so many admissions a second, for some
// seconds. It renews the lease several times in that time, and says how much it could
// use; what it does not need goes to those that do. With fewer slots than members that
// have work, those take turns. An admission costs no message, only a comparison with the
// time. The leases of a budget are one value in a key/value bucket of NATS JetStream,
// which members change by compare and set: the engine orders the changes, and there is
// no leader.
//
// # How far the total can be exceeded
//
// Let C be the total. At any time the members that hold a lease may use C together at most,
// because:
//
//   - In each value that the engine accepts the leases sum to C at most: a member
//     grants itself only what is free, and the engine accepts a value only in place of
//     the one that it was computed from. (After C was lowered, until all have renewed,
//     to the C before.)
//   - A member uses more than before only once the engine has accepted it, and stops
//     using what it gives back before it asks the engine. It gives back only what is
//     not in use.
//   - A lease ends, by the holder's monotonic clock, Config.Lease after the holder sent
//     the renewal. Others take it once they have seen no newer renewal for a quarter
//     longer than that, by theirs, and they begin to count when they have read it,
//     which is later than it was sent. So it is over before they take it, if no clock
//     runs more than a quarter faster than another. Clocks need not show the same time.
//   - A limiter compares the end of the lease with the time at each admission, and so
//     does Allow: a process that was stopped and goes on notices before it admits
//     anything.
//
// More than C runs only where a lease was lost, because its holder was stopped or cut
// off from the engine while work ran. That work may still run when others have got the
// slots, and was at most the lease. With Away: Keep, a member that is cut off goes on
// to admit, but at most so much that runs at a time. So the overshoot is at most the
// sum of the leases lost in this way, each the one before it was lost, or an equal
// share of C where that is more: replicas x lease. Of a rate R, any time T sees at most
// R x T, a tenth of a second of R saved up (at least one admission for each member; for
// one that was asked for more at once, so much, but no more than its share of a minute),
// and for each member that keeps its lease while cut off its rate meanwhile. Nothing is
// admitted in advance: joining and leaving add nothing to it. Where a budget gets its
// first rate, a member is bound by it from its next renewal on.
//
// Not covered: a machine that is suspended as a whole, whose monotonic clock may stand
// still; a bucket that is deleted, or loses its data; work that costs more slots than
// the lease, which runs alone; limiters that are Off or in a dry run; and long work,
// which holds no slot.
package clusterlimit

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/clusterlimit/internal/budget"
)

// Away says what a member does while it cannot reach the engine.
type Away uint8

const (
	// Keep goes on with the last lease after its end. A share above the equal one, C by
	// the number of members last known, becomes that over four times Config.Lease, and
	// only then one below it does.
	Keep Away = iota
	// FailClosed admits nothing once the lease has ended.
	FailClosed
)

// Config says which budget to join, and how. The zero value joins the budget "default" of
// the engine on this machine, with the totals that others have set.
type Config struct {
	// URL is where the engine is: a NATS server with JetStream, or several, separated by
	// commas. Empty means nats://127.0.0.1:4222.
	URL string
	// Conn is a connection to use instead. It stays open after Close. Give it
	// nats.ReconnectBufSize(-1) and a PingInterval of about the lease, so that failures
	// show.
	Conn *nats.Conn
	// Bucket is the key/value bucket; empty means "spillway". If there is none, it is
	// created with file storage and one copy. For several copies create it before.
	Bucket string

	// Name is the budget's; empty means "default". Letters, digits and -_=./ only, 200 at
	// most, and no dot at an end or beside another.
	Name string
	// Replica is this member's name for people; empty means the host's. Two members
	// may have the same. One that is started again is a new member: the lease of its
	// former life is free when it was not renewed for 1.25 times Lease. 255 bytes at most.
	Replica string

	// Concurrency is how much may run at a time, and Rate how much may be admitted in a
	// second, in the whole budget. Zero means what the others have set, and if none
	// has, no bound. The latest to join with a number sets it for all. Up to a billion.
	Concurrency, Rate int

	// Lease is for how long a lease is good; zero means 3 s, the least is 300 ms. It is
	// renewed six times in that time, in a request that may take a third of it. A
	// member that dies leaves its share unused for 1.25 times as long.
	Lease time.Duration
	// Away is Keep unless said otherwise.
	Away Away

	// Logger is told when the member's standing changes; nil means no log.
	Logger *slog.Logger
}

const (
	defaultLease = 3 * time.Second
	leastLease   = 300 * time.Millisecond
	joinTime     = 5 * time.Second
	mostLease    = budget.MostTTL
	mostReplica  = 255             // bytes, as a host's name: all members read and write all names at each renewal
	renewals     = budget.Renewals // in the time of a lease
	attempts     = 3               // that fail one after the other in that time
	fadeLeases   = 4
	wantLeases   = 2 // for which a member wants some after it was asked for any: as long as a turn
)

var validName = regexp.MustCompile(`^[-/_=.a-zA-Z0-9]{1,200}$`)

// check returns the configuration with its defaults, or all that is wrong with it.
func (cfg Config) check() (Config, error) {
	var wrong []error
	fault := func(format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("clusterlimit: "+format, args...))
	}
	if cfg.Conn != nil && cfg.URL != "" {
		fault("URL and Conn are both set: use one of them")
	}
	cfg.URL = cmp.Or(cfg.URL, nats.DefaultURL)
	cfg.Bucket = cmp.Or(cfg.Bucket, "spillway")
	if cfg.Name = cmp.Or(cfg.Name, "default"); !validName.MatchString(cfg.Name) || slices.Contains(strings.Split(cfg.Name, "."), "") {
		fault("Name is %.40q: use letters, digits and -_=./, 200 at most, and no dot at an end or beside another", cfg.Name)
	}
	if len(cfg.Replica) > mostReplica {
		fault("Replica is %.40q and so on, %d bytes: use %d at most", cfg.Replica, len(cfg.Replica), mostReplica)
	}
	if cfg.Replica == "" {
		cfg.Replica, _ = os.Hostname()
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
	if cfg.Away > FailClosed {
		fault("unknown Away %d: use Keep or FailClosed", cfg.Away)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg, errors.Join(wrong...)
}

// Join makes this process a member of a budget and returns once it has a lease, which may
// be of nothing until others have renewed theirs. It does not wait for an engine that is
// away, and five seconds at most for one that does not answer: whether to start without a
// budget is the caller's decision. The member has one goroutine until Close.
func Join(ctx context.Context, cfg Config) (*Member, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, err
	}
	m := &Member{
		cfg: cfg, base: time.Now(), conn: cfg.Conn, done: make(chan struct{}), key: "budget." + cfg.Name,
		causes: causesOf(cfg.Name),
	}
	m.holder = budget.NewHolder(budget.Terms{
		ID: rand.Text(), Name: cfg.Replica, Totals: budget.Amounts{budget.Slots: cfg.Concurrency, budget.Rate: cfg.Rate},
		TTL: cfg.Lease, Fade: fadeLeases * cfg.Lease, Keep: cfg.Away == Keep,
	})
	if m.conn == nil {
		if m.conn, err = connect(ctx, cfg); err != nil {
			return nil, err
		}
	}
	if m.kv, err = bucket(ctx, m.conn, cfg.Bucket); err == nil {
		err = m.first(ctx)
	}
	if err != nil {
		m.disconnect()
		return nil, fmt.Errorf("clusterlimit: cannot join %q: %w", cfg.Name, err)
	}
	running, stop := context.WithCancel(context.Background())
	m.stop = stop
	go m.run(running)
	return m, nil
}
