package clusterlimit

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/clusterlimit/internal/budget"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/internal/logtest"
	"github.com/spillway-go/spillway/limiter"
)

// sum returns the slots that members may use together.
func sum(members ...*Member) (n int) {
	for _, m := range members {
		n += m.Stats().Slots
	}
	return n
}

// turns makes goroutines wait for the next turn.
type turns struct {
	mu   sync.Mutex
	wake []chan struct{}
	over bool
}

func (r *turns) wait() {
	r.mu.Lock()
	if r.over {
		r.mu.Unlock()
		return
	}
	c := make(chan struct{})
	r.wake = append(r.wake, c)
	r.mu.Unlock()
	<-c
}

func (r *turns) next() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.wake {
		close(c)
	}
	r.wake = nil
}

// end releases all waiting goroutines for good.
func (r *turns) end() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.next()
}

// leases returns a function that reports whether all members still have their current leases. A
// machine that stalls for the time of a lease loses it, while the work on the machine goes on.
func leases(members ...*Member) (kept func() bool) {
	var tokens []uint64
	for _, m := range members {
		tokens = append(tokens, m.reading().token)
	}
	return func() bool {
		for i, m := range members {
			if s := m.reading(); s.token != tokens[i] || s.left <= 0 || s.failures > 0 {
				return false
			}
		}
		return true
	}
}

func TestMembersAdmitTheTotalTogether(t *testing.T) {
	t.Parallel()
	url := engine(t)
	var members []*Member
	var running, most atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	var turn turns // of the clients: they work until the next turn; refused clients ask again at the next turn
	for range 4 {
		m := join(t, Config{URL: url, Concurrency: 10})
		members = append(members, m)
		lim := bound(t, m)
		for range 8 {
			clients.Go(func() {
				for ctx.Err() == nil {
					err := lim.Do(ctx, func(context.Context) error {
						n := running.Add(1)
						defer running.Add(-1)
						for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
						}
						turn.wait()
						return nil
					})
					if rej, ok := errors.AsType[*spillway.Rejection](err); ok {
						if rej.Reason != spillway.ReasonBudget || !strings.HasPrefix(rej.Cause, "lease of default") { // plus a suffix if the machine stalls
							t.Errorf("refused for %v", rej)
						}
						turn.wait()
					}
				}
			})
		}
	}
	kept := leases(members...)
	await.True(t, "all has been leased and used", func() bool {
		turn.next()
		return sum(members...) == 10 && most.Load() >= 10
	})
	await.True(t, "each has a share", func() bool {
		turn.next()
		for _, m := range members {
			if m.Stats().Slots == 0 {
				return false
			}
		}
		return true
	})
	cancel()
	turn.end()
	clients.Wait()
	if most.Load() > 10 && kept() {
		t.Errorf("%d ran at a time", most.Load())
	}
}

func TestALeaseThatIsGivenBackIsFreeAtOnce(t *testing.T) {
	url := engine(t)
	first := join(t, Config{URL: url, Concurrency: 10, Rate: 1000, Lease: time.Hour})
	lim := bound(t, first)
	if s := first.reading(); s.Slots != 10 || s.Rate != 1000 || s.Members != 1 || s.Standing != "held" || s.token == 0 {
		t.Fatalf("%+v", s)
	}
	check(t, first.Close(t.Context()))
	second := join(t, Config{URL: url, Lease: time.Hour}) // an hour would be too long for the test
	if s := second.reading(); s.Slots != 10 || s.Rate != 1000 || s.Members != 1 || s.token <= first.reading().token {
		t.Errorf("%+v", s)
	}
	_, err := lim.Acquire(t.Context())
	if rej, ok := errors.AsType[*spillway.Rejection](err); !ok || rej.Reason != spillway.ReasonBudget || rej.Cause != "lease of default, given back" {
		t.Error(err)
	}
	if err := first.Allow(1); err == nil || first.Stats().Standing != "left" {
		t.Errorf("%v, %+v", err, first.Stats())
	}
	if err := first.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWorkThatRunsAtCloseKeepsItsSlots(t *testing.T) {
	url := engine(t)
	first := join(t, Config{URL: url, Concurrency: 10, Lease: time.Hour})
	lim := bound(t, first)
	for range 4 {
		if _, err := lim.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	check(t, first.Close(t.Context()))
	if s := join(t, Config{URL: url, Lease: time.Hour}).Stats(); s.Slots > 6 {
		t.Errorf("%d of 6", s.Slots)
	}
}

func TestADeadMembersLeaseIsTakenOver(t *testing.T) {
	t.Parallel()
	url := engine(t)
	dead, other := join(t, Config{URL: url, Concurrency: 10}), join(t, Config{URL: url})
	bound(t, dead)
	await.True(t, "both have a lease", func() bool { return dead.Stats().Slots > 0 && other.Stats().Slots > 0 })
	dead.die()
	again := join(t, Config{URL: url}) // a restarted replica
	await.True(t, "the two share all", func() bool {
		return sum(other, again) == 10 && again.Stats().Slots == 5 && again.Stats().Members == 2
	})
}

func TestAnEngineThatIsAwayIsNamed(t *testing.T) {
	for _, c := range []struct {
		err, last error
		says      string
	}{
		{nats.ErrReconnectBufExceeded, nil, "cannot be reached"},
		{nats.ErrReconnectBufExceeded, nats.ErrAuthorization, "refuses the login"},
	} {
		if err := inWords(c.err, c.last); !errors.Is(err, c.err) && !errors.Is(err, c.last) || !strings.Contains(err.Error(), c.says) {
			t.Error(err)
		}
	}
	if other := errors.New("another"); inWords(other, nil) != other {
		t.Error(inWords(other, nil))
	}
}

// The client library closed a connection for good when the server had refused two logins: a member
// with FailClosed then refused everything for ever.
func TestAMemberIsBackAfterRefusedLogins(t *testing.T) {
	t.Parallel()
	var logins logins
	s := start(t, &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true,
		CustomClientAuthentication: &logins,
	})
	p := newProxy(t, strings.TrimPrefix(s.ClientURL(), "nats://"))
	m := join(t, Config{URL: "nats://" + p.Addr().String(), Rate: 10, FailClosed: true})
	logins.refused.Store(true)
	p.set(true)
	p.set(false)
	await.True(t, "the login is refused", func() bool {
		s := m.Stats()
		return s.Standing == "over" && s.Err != nil && strings.Contains(s.Err.Error(), "refuses the login")
	})
	logins.refused.Store(false)
	await.True(t, "it is back", func() bool { s := m.Stats(); return s.Standing == "held" && s.Err == nil })
}

func TestAMemberThatIsCutOff(t *testing.T) {
	t.Parallel()
	for failClosed, want := range map[bool]struct{ standing, cause string }{
		false: {"kept", "lease of b, kept: the engine is away"}, true: {"over", "lease of b, over: the engine is away"},
	} {
		t.Run(want.standing, func(t *testing.T) {
			t.Parallel()
			url := engine(t)
			p := newProxy(t, strings.TrimPrefix(url, "nats://"))
			var log logtest.Log
			m := join(t, Config{URL: "nats://" + p.Addr().String(), Name: "b", Concurrency: 8, Rate: 10, FailClosed: failClosed, Logger: log.Logger()})
			lim := bound(t, m)
			other := join(t, Config{URL: url, Name: "b"})
			await.True(t, "both have a lease", func() bool { return sum(m, other) == 8 && other.Stats().Slots == 4 })
			p.set(true)
			before := m.reading()
			await.True(t, "it is cut off", func() bool {
				s := m.reading()
				if s.renewals > before.renewals { // the answer was in flight
					before = s
				}
				return s.Standing == want.standing
			})
			await.True(t, "the other has all", func() bool { return other.Stats().Slots == 8 })
			admitted := 0
			var err error
			await.True(t, "it uses what it has", func() bool {
				for range 100 {
					var p limiter.Permit
					if p, err = lim.Acquire(t.Context()); err != nil {
						break
					}
					t.Cleanup(p.Release)
					admitted++
				}
				return admitted > 0 || failClosed // a stalled machine keeps nothing before its first failure
			})
			rej, ok := errors.AsType[*spillway.Rejection](err)
			if !ok || rej.Reason != spillway.ReasonBudget || !strings.HasPrefix(rej.Cause, "lease of b") {
				t.Error(err)
			}
			if kept := !failClosed; kept && admitted > max(before.Slots, 4) || !kept && admitted > 0 {
				t.Errorf("cut off it admits %d, with %d before", admitted, before.Slots)
			}
			await.True(t, "it knows why", func() bool { s := m.reading(); return s.failures > 0 && s.Err != nil })
			got := ""
			await.True(t, "it is in the log", func() bool { got = log.With("standing=" + want.standing); return got != "" })
			// A lease that ended during a stall of the machine was over before any failure.
			if !strings.Contains(got, "level=WARN") || !failClosed && !strings.Contains(got, "error=") {
				t.Errorf("the log says %q", got)
			}
			if failClosed && m.Allow(1) == nil {
				t.Error("a rate without a lease")
			}
			p.set(false)
			await.True(t, "it is back", func() bool { s := m.Stats(); return s.Standing == "held" && s.Err == nil })
		})
	}
}

func TestARateIsSharedWithoutAMessage(t *testing.T) {
	t.Parallel()
	first, _, _, err := usedUp(t)
	if rej, ok := errors.AsType[*spillway.Rejection](err); !ok || rej.Reason != spillway.ReasonBudget || rej.Cause != "lease of calls" || rej.RetryAfter <= 0 {
		t.Error(err)
	}
	if err := first.Bind(&limiter.Limiter{}); err == nil || !strings.Contains(err.Error(), "set Config.Concurrency") {
		t.Error(err)
	}
}

// usedUp makes two members share a rate of 1,000 a second, and use it up. It returns one of them,
// the number of admissions of both, the time they took, and the last error.
func usedUp(t *testing.T) (first *Member, admitted int, took time.Duration, last error) {
	t.Helper()
	url := engine(t)
	first = join(t, Config{URL: url, Name: "calls", Rate: 1000})
	second := join(t, Config{URL: url, Name: "calls"})
	began := time.Now()
	await.True(t, "both share the rate, and are used up", func() bool {
		for _, m := range []*Member{first, second} {
			for range 100 {
				if last = m.Allow(1); last == nil {
					admitted++
				}
			}
		}
		a, b := first.reading(), second.reading()
		rej, ok := errors.AsType[*spillway.Rejection](last) // the machine may have stalled for the time of a lease
		return ok && !strings.Contains(rej.Cause, "away") &&
			a.admitted > 100 && b.admitted > 100 && a.Rate+b.Rate == 1000 && a.Rate >= 400 && b.Rate >= 400
	})
	if a, b := first.reading(), second.reading(); a.admitted+b.admitted != uint64(admitted) {
		t.Errorf("%d and %d are counted as admitted, and were %d", a.admitted, b.admitted, admitted)
	}
	return first, admitted, time.Since(began), last
}

// At a rate of ten a second, a request for a hundred was admitted once its first token was there,
// and so was a million. The debt ended with Close: 600 were admitted in 0.7 s.
func TestNothingIsAdmittedInAdvance(t *testing.T) {
	t.Parallel()
	url := engine(t)
	for range 3 {
		// No stall of the machine outlasts the lease.
		m := join(t, Config{URL: url, Name: "calls", Rate: 10, Lease: await.Limit})
		err := m.Allow(100) // the member saves for the request from now on
		if rej, ok := errors.AsType[*spillway.Rejection](err); !ok || rej.Reason != spillway.ReasonBudget || rej.RetryAfter < 3*time.Second {
			t.Errorf("a hundred: %v", err)
		}
		await.True(t, "the rate has brought some", func() bool {
			for _, n := range []int{601, 1_000_000, math.MaxInt} {
				err := m.Allow(n)
				if rej, ok := errors.AsType[*spillway.Rejection](err); !ok || rej.RetryAfter != 0 || !strings.HasSuffix(rej.Cause, "more at once than its share of a minute") {
					t.Errorf("%d: %v", n, err)
				}
			}
			return m.Allow(1) == nil
		})
		if s := m.reading(); s.admitted != 1 {
			t.Errorf("%+v", s)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A request that no share can satisfy is not reported as demand. Otherwise a caller that asks for a
// million at once would take the shares of all others.
func TestWhatNoShareIsEnoughForIsNoDemand(t *testing.T) {
	m := &Member{base: time.Now(), causes: causesOf("calls")}
	m.rate.set(0, 10, time.Hour, true, &m.causes[budget.Held])
	if m.Allow(1_000_000) == nil || m.Allow(7) == nil {
		t.Error("admitted")
	}
	if _, all := m.rate.offered(time.Hour); all != 7 {
		t.Errorf("%d were asked for", all)
	}
	if s := m.rate.refused; s != 1_000_007 {
		t.Errorf("%d were refused", s)
	}
}

// All older members used to stop renewing as soon as a newer member had written more.
func TestAMemberRenewsBesideANewerVersion(t *testing.T) {
	t.Parallel()
	m := join(t, Config{URL: engine(t), Concurrency: 10})
	ctx := await.Context(t, "an answer")
	newer := func() bool {
		entry, err := m.kv.Get(ctx, m.key(m.group))
		check(t, err)
		text := append(bytes.ReplaceAll(entry.Value(), []byte("\n"), []byte(" fairness=zone\n")), " zone=b"...)
		_, err = m.kv.Update(ctx, m.key(m.group), text, entry.Revision())
		return err == nil
	}
	await.True(t, "a newer version has written", newer)
	before := m.reading().renewals
	await.True(t, "it renews", func() bool { return m.reading().renewals > before+2 })
	entry, err := m.kv.Get(ctx, m.key(m.group))
	if err != nil || !strings.Contains(string(entry.Value()), " fairness=zone\n") || !strings.Contains(string(entry.Value()), " zone=b") {
		t.Errorf("%v, %s", err, entry.Value())
	}
}

// NATS forbids keys with an empty part between dots. For such a name Join used to return only
// "invalid key".
func TestNamesWithAnEmptyPartAreRefused(t *testing.T) {
	for _, name := range []string{".x", "x.", "a..b", ".", "..", "a.b.", strings.Repeat(".", 300)} {
		if _, err := (Config{Name: name}).check(); err == nil || !strings.Contains(err.Error(), "no dot at an end") {
			t.Errorf("%.10q: %v", name, err)
		}
	}
	for _, name := range []string{"", "a.b", "-/_=", "A9", strings.Repeat("a", 200)} {
		if _, err := (Config{Name: name}).check(); err != nil {
			t.Errorf("%.10q: %v", name, err)
		}
	}
}

func TestWhatCannotBeJoinedSaysWhatToDo(t *testing.T) {
	url := engine(t)
	for want, cfg := range map[string]Config{
		"start one with nats-server -js": {URL: "nats://127.0.0.1:1"},
		"use letters, digits":            {URL: url, Name: "a b"},
		"200 at most":                    {URL: url, Name: strings.Repeat("a", 201)}, // used to list only the letters
		"Concurrency is -1":              {URL: url, Concurrency: -1},
		"Rate is -1":                     {URL: url, Rate: -1},
		"Lease is 1ms":                   {URL: url, Lease: time.Millisecond},
	} {
		if _, err := joined(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	m := join(t, Config{URL: url})
	if err := m.Allow(1_000_000); err != nil { // no rate, no bound
		t.Error(err)
	}
	if _, err := m.kv.Create(await.Context(t, "an answer"), "budget.odd", []byte("no budget")); err != nil {
		t.Fatal(err)
	}
	if _, err := joined(t.Context(), Config{URL: url, Name: "odd"}); err == nil || !strings.Contains(err.Error(), "update this replica") || !strings.Contains(err.Error(), "stop all members and delete it") {
		t.Error(err)
	}
}

func TestOneMemberBindsOneLimiter(t *testing.T) {
	m := join(t, Config{URL: engine(t), Concurrency: 5})
	lim := bound(t, m)
	if err := m.Bind(lim); err != nil {
		t.Error(err)
	}
	other, _ := limiter.New(limiter.Config{})
	if m.Bind(other) == nil || m.Bind(nil) == nil {
		t.Error("bound")
	}
}

// Two members share one slot: neither has it for ever. The second member never ran any work, so its
// limiter cannot measure its demand.
func TestReplicasTakeTurnsWhereThereAreFewerSlots(t *testing.T) {
	t.Parallel()
	url := engine(t)
	first := join(t, Config{URL: url, Concurrency: 1, Lease: time.Second / 2})
	second := join(t, Config{URL: url, Lease: time.Second / 2})
	kept := leases(first, second)
	lims := []*limiter.Limiter{bound(t, first), bound(t, second)}
	turns, last := 0, -1
	await.True(t, "both had a turn, and the first another one", func() bool {
		together := 0
		for i, lim := range lims {
			if p, err := lim.Acquire(t.Context()); err == nil {
				defer p.Release()
				together++
				if last != i {
					turns, last = turns+1, i
				}
			}
		}
		if together > 1 && kept() {
			t.Error("both ran work")
		}
		return turns >= 3
	})
}
