package limiter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"weak"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/names"
)

// KeyedConfig configures a family of limiters. The zero value works.
type KeyedConfig struct {
	// New returns the configuration for the limiter of a key; nil means the zero
	// Config. An empty Name becomes the key. Each call returns a Law, Signals and so
	// on of its own. Callers that use a new key at the same time may each call New; one
	// of the limiters is kept.
	New func(key string) Config

	// MaxKeys is the maximum number of limiters beside the shared limiter; zero means
	// 1024. A further key evicts the least recently used idle limiter. The state that
	// the evicted limiter has learned is lost; its counts are lost unless metrics.Keyed
	// has the family. A limiter takes about 1.7 KB with limit.NewFixed and 3.7 KB with
	// the default law, 0.6 to 0.9 KB more once it has had work, and up to 7 KB more once it has refused
	// work and work has waited (go test ./limiter -run AllocsOf -v).
	MaxKeys int
}

const (
	defaultMaxKeys = 1024
	// Overflow is the key of the shared limiter. Overflow is passed to KeyedConfig.New,
	// and work with the key Overflow uses the shared limiter.
	Overflow = "(overflow)"
	// lookBack is how many of the least recently used limiters are checked for idleness
	// before a new key has to use the shared limiter.
	lookBack = 16
)

// Keyed is a family of limiters: one for each route, dependency or tenant. Its
// memory is bounded: when every limiter has work, further keys share one extra
// limiter, so that a caller that invents keys cannot create capacity without bound. A key of
// more than 128 bytes is replaced by its first 63 bytes and a hash, also for KeyedConfig.New. A
// Keyed is safe for concurrent use and has no goroutine. Create a Keyed with NewKeyed:
// the zero Keyed panics with a message.
type Keyed struct {
	config  func(key string) Config
	maxKeys int

	mu     sync.Mutex
	of     map[string]*keyed // the shared limiter, once needed, has the key Overflow
	recent keyed             // head of the list of members, most recently used first, without the shared one
	listed int               // members in the list
	settings

	watches []weak.Pointer[keyedWatch]
}

// settings are what all limiters of a family are told.
type settings struct {
	closed spillway.Reason
	mode   Mode // of all limiters, if moded
	moded  bool // SetMode was called
	front  bool // Front was called
}

// keyed is one limiter of a family, and is not evicted while users is above zero.
type keyed struct {
	key   string
	lim   *Limiter
	users int
	next  *keyed // used before; nil for the shared limiter
	prior *keyed // used after
}

// remove takes m out of the list.
func (m *keyed) remove() { m.prior.next, m.next.prior = m.next, m.prior }

// insert puts m into the list, as the most recently used member of the list that head begins.
func (m *keyed) insert(head *keyed) {
	m.prior, m.next = head, head.next
	head.next, m.next.prior = m, m
}

// touch makes m the most recently used member.
func (k *Keyed) touch(m *keyed) {
	if m.next != nil && k.recent.next != m {
		m.remove()
		m.insert(&k.recent)
	}
}

// NewKeyed returns an empty family.
func NewKeyed(cfg KeyedConfig) (*Keyed, error) {
	if cfg.MaxKeys < 0 {
		return nil, fmt.Errorf("limiter: MaxKeys is %d: it cannot be negative (zero means %d)", cfg.MaxKeys, defaultMaxKeys)
	}
	if cfg.New == nil {
		cfg.New = func(string) Config { return Config{} }
	}
	k := &Keyed{config: cfg.New, maxKeys: cmp.Or(cfg.MaxKeys, defaultMaxKeys), of: map[string]*keyed{}}
	k.recent.next, k.recent.prior = &k.recent, &k.recent
	return k, nil
}

// Acquire is Limiter.Acquire on the limiter of key, which stays in the family until
// the permit ends. If New refuses the configuration, Acquire and the methods below
// return the error, wrapped with the key.
func (k *Keyed) Acquire(ctx context.Context, key string) (Permit, error) {
	return k.AcquireWith(ctx, key, Request{})
}

// AcquireWith is Limiter.AcquireWith on the limiter of key, as Acquire.
func (k *Keyed) AcquireWith(ctx context.Context, key string, r Request) (Permit, error) {
	m, err := k.use(key)
	if err != nil {
		return Permit{}, err
	}
	defer k.done(m) // afterwards the limiter is not idle while the work runs
	return m.lim.acquire(ctx, &r)
}

// Do is Limiter.Do on the limiter of key, which stays in the family meanwhile.
func (k *Keyed) Do(ctx context.Context, key string, fn func(context.Context) error) error {
	m, err := k.use(key)
	if err != nil {
		return err
	}
	defer k.done(m)
	return m.lim.Do(ctx, fn)
}

// Get returns the limiter of key, or the shared limiter. Use the limiter at once and
// do not keep it: a limiter without work may leave the family at any time, and its key
// may then have a second limiter.
func (k *Keyed) Get(key string) (*Limiter, error) {
	m, err := k.use(key)
	if err != nil {
		return nil, err
	}
	k.done(m)
	return m.lim, nil
}

// Front calls Limiter.Front on all limiters of the family, including the limiters of later keys.
func (k *Keyed) Front() {
	k.lock()
	defer k.mu.Unlock()
	k.front = true
	for _, m := range k.of {
		m.lim.Front()
	}
}

// done decrements the users of m.
func (k *Keyed) done(m *keyed) {
	k.mu.Lock()
	m.users--
	k.mu.Unlock()
}

// lock takes the lock of the family. It panics if NewKeyed did not make the family.
func (k *Keyed) lock() {
	if k.of == nil {
		panic("limiter: a Keyed is made by NewKeyed")
	}
	k.mu.Lock()
}

// use returns the member for key and increments its users. It builds a limiter without the lock and then
// looks again: meanwhile another caller may have added the key or taken the free place, changed the mode or
// closed the family.
func (k *Keyed) use(key string) (*keyed, error) {
	key = names.Bounded(key)
	var lim *Limiter // of the key built, with the settings set
	var built string
	var set settings
	for {
		k.lock()
		place := key
		if key != Overflow && k.of[key] == nil && !k.room() {
			place = Overflow
		}
		if k.of[place] == nil && lim != nil && place == built && set == k.settings {
			k.add(built, lim)
		}
		if m := k.of[place]; m != nil {
			m.users++
			k.touch(m)
			k.mu.Unlock()
			return m, nil
		}
		built, set = strings.Clone(place), k.settings // a key may be a part of a large request
		behind := k.behind()
		k.mu.Unlock()
		for _, w := range behind {
			w.catchUp()
		}
		var err error
		if lim, err = k.build(built, &set); err != nil {
			return nil, err
		}
	}
}

// add makes lim the limiter of a key. The caller holds the lock.
func (k *Keyed) add(key string, lim *Limiter) {
	m := &keyed{key: key, lim: lim}
	if k.of[key] = m; key != Overflow {
		m.insert(&k.recent)
		k.listed++
	}
}

// build builds the limiter of a key. It runs the user's code, so the caller does not hold the lock.
func (k *Keyed) build(key string, set *settings) (*Limiter, error) {
	cfg := k.config(key)
	cfg.Name = cmp.Or(cfg.Name, key)
	if set.moded {
		cfg.Mode = set.mode
	}
	lim, err := New(cfg)
	if err != nil {
		return nil, fmt.Errorf("limiter of key %q: %w", key, err)
	}
	lim.gate.TallyAlone()
	if set.front {
		lim.Front()
	}
	if set.closed != 0 { // closeIntake may call an observer
		lim.closeIntake(set.closed)
	}
	return lim, nil
}

// room reports whether there is room for one more member, and evicts one if necessary.
func (k *Keyed) room() bool { return k.listed < k.maxKeys || k.evict() }

// evict removes the least recently used idle limiter. It checks only lookBack limiters,
// and moves limiters with work to the front.
func (k *Keyed) evict() bool {
	for range min(lookBack, k.listed) {
		m := k.recent.prior
		if m.users == 0 && k.idle(m) {
			m.remove()
			k.listed--
			delete(k.of, m.key)
			k.left(m)
			return true
		}
		k.touch(m)
	}
	return false
}

// idle reports whether the limiter of m is idle. If a user-defined law ends the goroutine, idle releases the lock of the
// family.
func (k *Keyed) idle(m *keyed) (idle bool) {
	returned := false
	defer func() {
		if !returned {
			k.mu.Unlock()
		}
	}()
	idle, returned = m.lim.idleNow(), true
	return idle
}

func (l *Limiter) idleNow() bool {
	l.lock(l.now())
	if l.careful != nil {
		l.consult()
	}
	idle := l.gate.Idle() && l.changes == nil
	for l.free() { // changes are reported later, without the lock of the family
	}
	return idle
}

// members returns all members, the most recently used first and the shared one last.
func (k *Keyed) members() []*keyed {
	k.lock()
	defer k.mu.Unlock()
	return k.all()
}

// all is members for a caller that holds the lock of the family.
func (k *Keyed) all() []*keyed {
	all := make([]*keyed, 0, len(k.of)+1)
	for m := k.recent.next; m != &k.recent; m = m.next {
		all = append(all, m)
	}
	if shared := k.of[Overflow]; shared != nil {
		all = append(all, shared)
	}
	return all
}

// All yields the key and the Stats of every current limiter, the shared limiter under
// Overflow.
func (k *Keyed) All() iter.Seq2[string, Stats] {
	return func(yield func(string, Stats) bool) {
		for _, m := range k.members() {
			if !yield(m.key, m.lim.Stats()) {
				return
			}
		}
	}
}

// SetMode changes the mode of every limiter. Limiters of later keys get the same mode,
// which replaces the mode from KeyedConfig.New. An unknown mode changes nothing.
func (k *Keyed) SetMode(m Mode) {
	if m > Off {
		return
	}
	k.lock()
	k.mode, k.moded = m, true
	k.mu.Unlock()
	for _, m := range k.members() {
		for mode := k.modeNow(); m.lim.Mode() != mode; mode = k.modeNow() { // another SetMode may come between
			m.lim.SetMode(mode)
		}
	}
}

func (k *Keyed) modeNow() Mode {
	k.lock()
	defer k.mu.Unlock()
	return k.mode
}

// Open reports whether the family accepts work: false once Drain or Close was called.
func (k *Keyed) Open() bool {
	k.lock()
	defer k.mu.Unlock()
	return k.closed == 0
}

// Drain drains every limiter. Limiters of later keys refuse from the start. If ctx ends
// before all work has ended, the error is a *spillway.DrainError with the sums of all
// limiters and the oldest work of all.
func (k *Keyed) Drain(ctx context.Context) error {
	k.close(spillway.ReasonDraining)
	members := k.members()
	for _, m := range members { // no intake stays open while another drains
		m.lim.closeIntake(spillway.ReasonDraining)
	}
	var sum spillway.DrainError
	for _, m := range members {
		if d, ok := errors.AsType[*spillway.DrainError](m.lim.Drain(ctx)); ok {
			sum.Dropped += d.Dropped
			sum.Running += d.Running
			sum.Cause = d.Cause
			if d.Oldest > sum.Oldest {
				sum.Oldest, sum.Kind = d.Oldest, d.Kind
			}
		}
	}
	if sum.Cause != nil {
		return &sum
	}
	return nil
}

// Close closes every limiter. Limiters of later keys refuse from the start.
func (k *Keyed) Close() {
	k.close(spillway.ReasonClosed)
	for _, m := range k.members() {
		m.lim.Close()
	}
}

func (k *Keyed) close(reason spillway.Reason) {
	k.lock()
	defer k.mu.Unlock()
	if k.closed != spillway.ReasonClosed {
		k.closed = reason
	}
}
