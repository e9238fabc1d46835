package clusterlimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/clusterlimit/internal/budget"
	"github.com/spillway-go/spillway/limiter"
)

// Member is one replica's membership in a budget. It is safe for concurrent use.
type Member struct {
	cfg    Config
	base   time.Time
	conn   *nats.Conn
	kv     store
	id     string
	causes causes
	stop   context.CancelFunc
	done   chan struct{} // closed when the goroutine has ended

	acting sync.Mutex // held while the limiter gets its bound; locked before mu
	mu     sync.Mutex // not held during calls of user code
	holder *budget.Holder
	lim    *limiter.Limiter
	wanted budget.Amounts // demand in the latest renewal
	asked  [budget.Kinds]asked
	counts counts
	closed bool

	rate rate

	// Of the goroutine that renews; before it starts, of Join.
	group   string          // empty: no group yet
	full    map[string]bool // groups in which there was no room
	orphans map[string]*orphan
	link    link

	unreadable bool // at the latest visit the root could not be read
}

// now reads the member's clock.
func (m *Member) now() time.Duration { return time.Since(m.base) }

// Bind limits lim to the member's share of Config.Concurrency, whatever the limit of its law. The
// law learns of the bound. Rejections caused by the share have the reason Budget, with the budget's
// name in the Cause. One member binds one limiter: two limiters would both admit the whole share.
// After Close lim admits nothing. Bind lim before it has work.
func (m *Member) Bind(lim *limiter.Limiter) error {
	m.acting.Lock()
	defer m.acting.Unlock()
	m.mu.Lock()
	totals, _ := m.holder.Totals()
	var err error
	switch {
	case lim == nil:
		err = errors.New("clusterlimit: Bind of a nil limiter")
	case m.lim != nil && m.lim != lim:
		err = errors.New("clusterlimit: the member has a limiter: join once for each")
	case totals[budget.Slots] == 0:
		err = fmt.Errorf("clusterlimit: the budget %q has no concurrency: set Config.Concurrency", m.cfg.Name)
	case m.closed:
		err = errors.New("clusterlimit: the member is closed: join again")
	default:
		m.lim = lim
	}
	m.mu.Unlock()
	if err != nil {
		return err
	}
	m.enforce()
	return nil
}

// run renews the lease until ctx ends.
func (m *Member) run(ctx context.Context) {
	defer close(m.done)
	for {
		m.mu.Lock()
		every := m.holder.Every()
		if m.counts.err != nil {
			every = m.cfg.Lease / renewals
		}
		m.mu.Unlock()
		pause := time.NewTimer(every - every/8 + rand.N(every/4))
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
		m.act(func() {})         // a kept lease shrinks
		if m.renew(ctx) == nil { // Stats reports the error
			m.lookAfter(ctx)
		}
	}
}

// renew is one attempt, with several tries if other members are faster. Only one attempt runs at a
// time.
func (m *Member) renew(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, m.cfg.Lease/attempts)
	defer cancel()
	m.act(func() { m.holder.Begin(m.now()) })
	wants := m.wants()
	err := m.open(within)
	if err == nil {
		err = compete(within, m.cfg.Lease, func(ctx context.Context) (bool, error) { return m.try(ctx, wants) }, func() {
			m.act(func() { m.counts.conflicts++ })
		})
	}
	if err != nil && (ctx.Err() == nil || m.stop == nil) {
		m.act(func() {
			m.holder.Fail()
			m.counts.failures++
			m.counts.err = m.inWords(err)
		})
		clear(m.orphans) // as for all leases, the wait starts anew: others may have been unable to renew
		if m.stop != nil && noStream(err) {
			m.kv = nil // the next attempt opens the bucket, and makes a lost one anew
		}
	}
	if err == nil {
		m.visit(ctx, wants)
	}
	return err
}

// try renews the lease unless another member has changed the budget meanwhile.
func (m *Member) try(ctx context.Context, wants budget.Amounts) (won bool, err error) {
	if m.group == "" {
		if placed, err := m.place(ctx); !placed {
			return false, err
		}
	}
	s, revision, err := m.read(ctx, m.key(m.group))
	if err != nil {
		return false, err
	}
	if m.isFull(s) {
		m.full[m.group], m.group = true, ""
		return false, nil
	}
	m.act(func() { m.holder.Aim(m.now(), s, wants) })
	inUse := m.inUse() // after the limiter has its new bound
	var next budget.State
	m.act(func() { next = m.holder.Renew(m.now(), inUse) })
	if won, err = m.write(ctx, m.key(m.group), next, revision); won {
		m.act(func() {
			m.holder.Confirm()
			m.counts.renewals++
			m.counts.err = nil
		})
	}
	return won, err
}

// act changes the member's state, and then gives the limiter the resulting bound.
func (m *Member) act(change func()) {
	m.acting.Lock()
	defer m.acting.Unlock()
	m.mu.Lock()
	change()
	m.mu.Unlock()
	m.enforce()
}

// enforce gives the limiter and the bucket their bounds. The caller holds acting.
func (m *Member) enforce() {
	m.mu.Lock()
	b, lim, was := m.holder.Bound(m.now()), m.lim, m.counts.standing
	totals, _ := m.holder.Totals()
	m.counts.standing = b.Standing
	err := m.counts.err
	m.mu.Unlock()
	cause := &m.causes[b.Standing]
	if lim != nil {
		lim.SetLease(b.Amounts[budget.Slots], m.base.Add(b.Until), cause.name)
	}
	m.rate.set(m.now(), b.Amounts[budget.Rate], b.Until, totals[budget.Rate] > 0 || b.Standing == budget.Left, cause)
	if b.Standing != was {
		m.report(b, was, err)
	}
}

// report logs a change of the standing. A standing without the engine, or without admissions, is a
// warning with the cause.
func (m *Member) report(b budget.Bound, was budget.Standing, err error) {
	level, args := slog.LevelInfo, []any{"name", m.cfg.Name, "standing", b.Standing.String(), "before", was.String(),
		"slots", b.Amounts[budget.Slots], "rate", b.Amounts[budget.Rate]}
	if b.Standing == budget.Kept || b.Standing == budget.Over {
		level = slog.LevelWarn
		if err != nil {
			args = append(args, "error", err)
		}
	}
	m.cfg.Logger.Log(context.Background(), level, "spillway budget", args...)
}

// asked is the demand for one kind so far, and the time of the latest request.
type asked struct {
	count uint64
	at    time.Duration
}

// lately reports whether there was a request within the last wantLeases leases.
func (a *asked) lately(now time.Duration, count uint64, lease time.Duration) bool {
	if count != a.count {
		a.count, a.at = count, now
	}
	return a.count > 0 && now-a.at < wantLeases*lease
}

// wants returns how much the member could use. A rise takes effect at once, a fall gradually. The
// result is at least one while there was a request lately: a limiter that has had no slot yet
// cannot measure its demand.
func (m *Member) wants() budget.Amounts {
	m.mu.Lock()
	lim, last, has := m.lim, m.wanted, m.holder.Bound(m.now()).Amounts
	totals, _ := m.holder.Totals()
	m.mu.Unlock()
	clock := m.now()
	perSecond, count := m.rate.offered(clock)
	now, some := budget.Amounts{budget.Rate: perSecond}, [budget.Kinds]bool{budget.Rate: m.asked[budget.Rate].lately(clock, count, m.cfg.Lease)}
	if lim != nil {
		s := lim.Stats()
		n := s.InFlight + s.Queued
		if s.Completed > 0 && s.Shed == 0 { // more slots help no processor
			n = max(n, int(math.Ceil(min(s.Demand*float64(s.Limit), budget.Most))))
		}
		if s.Limit < has[budget.Slots] { // the law's limit is below the lease
			n = min(n, s.Limit+s.Limit/4+1)
		}
		now[budget.Slots] = n
		some[budget.Slots] = m.asked[budget.Slots].lately(clock, s.Offered, m.cfg.Lease) || s.InFlight+s.Queued > 0
	}
	for kind, n := range now {
		if n = max(n, 1); !some[kind] { // the rest of a fading mean is no demand
			n = 0
		}
		now[kind] = min(max(n, last[kind]-(last[kind]+3)/4), totals[kind])
	}
	m.mu.Lock()
	m.wanted = now
	m.mu.Unlock()
	return now
}

// inUse returns the amounts that cannot be given back now. A rate can always be given back.
func (m *Member) inUse() (n budget.Amounts) {
	m.mu.Lock()
	lim := m.lim
	m.mu.Unlock()
	if lim != nil {
		n[budget.Slots] = lim.Stats().InFlight
	}
	return n
}

// Close stops all admissions and gives the lease back. Other members can have the lease at once,
// except for the slots of work that still runs, which are free 1.25 times Config.Lease later. So
// drain the limiter first. An error means that the engine did not get the lease back: the whole
// lease then ends by itself. Closing again does nothing.
func (m *Member) Close(ctx context.Context) error {
	m.mu.Lock()
	closed := m.closed
	m.closed = true
	m.mu.Unlock()
	if closed {
		return nil
	}
	m.stop()
	<-m.done
	m.act(func() { m.holder.Quit() })
	defer m.disconnect()
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Lease)
	defer cancel()
	err := errBeaten
	for errors.Is(err, errBeaten) { // until ctx ends: Close has only one chance
		err = compete(ctx, m.cfg.Lease, m.leave, func() {})
	}
	if err != nil {
		return fmt.Errorf("clusterlimit: the lease was not given back and ends by itself: %w", err)
	}
	return nil
}

// leave gives the lease back unless another member has changed the budget meanwhile.
func (m *Member) leave(ctx context.Context) (won bool, err error) {
	if err := m.open(ctx); err != nil {
		return false, err
	}
	s, revision, err := m.read(ctx, m.key(m.group))
	if err != nil || s.Of(m.id).Token == 0 { // others have taken the lease, or the bucket is lost
		return err == nil, err
	}
	return m.write(ctx, m.key(m.group), m.holder.Leave(s, m.inUse()), revision)
}
