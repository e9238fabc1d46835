package limiter

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"weak"

	"github.com/spillway-go/spillway"
)

// KeyedConfig says what a family of limiters does. The zero value works.
type KeyedConfig struct {
	// New returns the configuration for the limiter of a key; nil means the zero
	// Config. A Name left empty becomes the key. Each call returns a Law, Signals
	// and so on of its own. Callers that use a new key at the same time may each
	// call it; one of the limiters is kept.
	New func(key string) Config

	// MaxKeys is how many limiters there are at most, beside the shared one; zero
	// means 1024. For one more, an idle one makes room, the one that was not used
	// for longest; what it learned is forgotten, and what it counted unless a KeyedWatch
	// is told.
	MaxKeys int
}

const (
	defaultMaxKeys = 1024
	// Overflow is the key of the shared limiter: it is passed to KeyedConfig.New, and
	// work that asks for it has that limiter.
	Overflow = "(overflow)"
	// lookBack is how many old limiters are asked whether they are idle before a
	// new key has to use the shared one.
	lookBack = 16
)

// Keyed is a family of limiters: one for each route, dependency or tenant. Its
// memory is bounded: when every limiter has work, further keys share one more,
// so that a caller that makes up keys cannot make up capacity without end. It is
// safe for concurrent use and has no goroutine. NewKeyed makes one: the zero Keyed
// panics and says so.
type Keyed struct {
	config  func(key string) Config
	maxKeys int

	mu     sync.Mutex
	of     map[string]*keyed
	recent *list.List // of *keyed, the latest used first; without the shared one
	shared *keyed     // nil until needed
	closed spillway.Reason
	mode   Mode // of all
	moded  bool // it was set

	watches []weak.Pointer[KeyedWatch]
}

// keyed is one limiter of a family. While users is above zero it stays.
type keyed struct {
	key   string
	lim   *Limiter
	users int
	place *list.Element // nil: shared
}

// NewKeyed returns an empty family.
func NewKeyed(cfg KeyedConfig) (*Keyed, error) {
	if cfg.MaxKeys < 0 {
		return nil, fmt.Errorf("limiter: MaxKeys is %d: it cannot be negative (zero means %d)", cfg.MaxKeys, defaultMaxKeys)
	}
	if cfg.New == nil {
		cfg.New = func(string) Config { return Config{} }
	}
	return &Keyed{
		config: cfg.New, maxKeys: cmp.Or(cfg.MaxKeys, defaultMaxKeys),
		of: map[string]*keyed{}, recent: list.New(),
	}, nil
}

// Acquire is Limiter.Acquire on the limiter of key, which stays in the family until
// the permit ends. The error of a configuration that New refuses is returned as it is,
// here and below.
func (k *Keyed) Acquire(ctx context.Context, key string) (Permit, error) {
	return k.acquire(ctx, key, Request{}, true)
}

// AcquireWith is Limiter.AcquireWith on the limiter of key, as Acquire.
func (k *Keyed) AcquireWith(ctx context.Context, key string, r Request) (Permit, error) {
	return k.acquire(ctx, key, r, true)
}

// TryAcquire is Limiter.TryAcquire on the limiter of key, as Acquire.
func (k *Keyed) TryAcquire(ctx context.Context, key string) (Permit, error) {
	return k.acquire(ctx, key, Request{}, false)
}

// TryAcquireWith is Limiter.TryAcquireWith on the limiter of key, as Acquire.
func (k *Keyed) TryAcquireWith(ctx context.Context, key string, r Request) (Permit, error) {
	return k.acquire(ctx, key, r, false)
}

func (k *Keyed) acquire(ctx context.Context, key string, r Request, mayWait bool) (Permit, error) {
	m, err := k.use(key)
	if err != nil {
		return Permit{}, err
	}
	defer k.done(m) // then the limiter knows of the work, or there is none
	return m.lim.acquire(ctx, r, mayWait)
}

// Do is Limiter.Do on the limiter of key, which stays in the family meanwhile.
func (k *Keyed) Do(ctx context.Context, key string, fn func(context.Context) error) error {
	return k.DoWith(ctx, key, Request{}, fn)
}

// DoWith is Limiter.DoWith on the limiter of key, as Do.
func (k *Keyed) DoWith(ctx context.Context, key string, r Request, fn func(context.Context) error) error {
	m, err := k.use(key)
	if err != nil {
		return err
	}
	defer k.done(m)
	return m.lim.DoWith(ctx, r, fn)
}

// Get returns the limiter of key, or the shared one. Use it at once and do not
// keep it: a limiter without work may leave the family at any time, and would
// then be one of two for its key.
func (k *Keyed) Get(key string) (*Limiter, error) {
	m, err := k.use(key)
	if err != nil {
		return nil, err
	}
	k.done(m)
	return m.lim, nil
}

// done ends a use.
func (k *Keyed) done(m *keyed) {
	k.mu.Lock()
	m.users--
	k.mu.Unlock()
}

// lock takes the lock of a family that NewKeyed made.
func (k *Keyed) lock() {
	if k.of == nil {
		panic("limiter: a Keyed is made by NewKeyed")
	}
	k.mu.Lock()
}

// use returns the member for key with one user more.
func (k *Keyed) use(key string) (m *keyed, err error) {
	for m == nil && err == nil {
		m, err = k.tryUse(key)
	}
	return m, err
}

// tryUse is use, and returns nil if the room it found was taken, or the mode was
// changed or the family closed meanwhile.
func (k *Keyed) tryUse(key string) (*keyed, error) {
	k.lock()
	mode, moded, closed := k.mode, k.moded, k.closed
	m := k.find(key)
	room := m == nil && key != Overflow && k.room() // two of that key could not be told apart
	if m == nil && !room && k.shared != nil {
		m = k.shared
		m.users++
	}
	var behind []*KeyedWatch
	if m == nil {
		behind = k.behind()
	}
	k.mu.Unlock()
	if m != nil {
		return m, nil
	}
	for _, w := range behind {
		w.catchUp()
	}
	if !room {
		key = Overflow
	}
	// The caller's code runs without the lock; another caller may be faster.
	cfg := k.config(key)
	cfg.Name = cmp.Or(cfg.Name, key)
	if moded {
		cfg.Mode = mode
	}
	lim, err := New(cfg)
	if err != nil {
		return nil, fmt.Errorf("limiter of key %q: %w", key, err)
	}
	if closed != 0 { // which may tell an observer
		lim.closeIntake(closed)
	}

	k.lock()
	defer k.mu.Unlock()
	if k.mode != mode || k.moded != moded || k.closed != closed {
		return nil, nil
	}
	if !room {
		if k.shared == nil {
			k.shared = &keyed{key: Overflow, lim: lim}
		}
		k.shared.users++
		return k.shared, nil
	}
	if m := k.find(key); m != nil {
		return m, nil
	}
	if !k.room() { // many found the same room
		return nil, nil
	}
	m = &keyed{key: key, lim: lim, users: 1}
	m.place = k.recent.PushFront(m)
	k.of[key] = m
	return m, nil
}

// find returns the member of key with one user more, or nil.
func (k *Keyed) find(key string) *keyed {
	m := k.of[key]
	if m != nil {
		m.users++
		k.recent.MoveToFront(m.place)
	}
	return m
}

// room reports whether there is, or can be made, room for one more.
func (k *Keyed) room() bool { return len(k.of) < k.maxKeys || k.evict() }

// evict forgets the idle limiter that was not used for longest. It looks at a
// few only, and takes those with work to the front.
func (k *Keyed) evict() bool {
	for range min(lookBack, k.recent.Len()) {
		m := k.recent.Back().Value.(*keyed)
		if m.users == 0 && m.lim.idleNow() {
			k.recent.Remove(m.place)
			delete(k.of, m.key)
			k.left(m)
			return true
		}
		k.recent.MoveToFront(m.place)
	}
	return false
}

func (l *Limiter) idleNow() bool {
	l.lock(l.now())
	idle := l.gate.Idle() && l.changes == nil
	for l.free() { // the observer is told later, without the lock of the family
	}
	return idle
}

// members returns all limiters by name of their keys, the latest used first and
// the shared one last.
func (k *Keyed) members() []*keyed {
	k.lock()
	defer k.mu.Unlock()
	return k.all()
}

// all is members, of a family that is locked.
func (k *Keyed) all() []*keyed {
	all := make([]*keyed, 0, len(k.of)+1)
	for e := k.recent.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(*keyed))
	}
	if k.shared != nil {
		all = append(all, k.shared)
	}
	return all
}

// All yields the key and the Stats of every limiter that is there now, the shared
// one under Overflow.
func (k *Keyed) All() iter.Seq2[string, Stats] {
	return func(yield func(string, Stats) bool) {
		for _, m := range k.members() {
			if !yield(m.key, m.lim.Stats()) {
				return
			}
		}
	}
}

// SetMode changes the mode of every limiter, and those of later keys have it whatever
// KeyedConfig.New says. A mode that does not exist changes nothing.
func (k *Keyed) SetMode(m Mode) {
	if m > Off {
		return
	}
	k.lock()
	k.mode, k.moded = m, true
	k.mu.Unlock()
	for _, m := range k.members() {
		for mode := k.modeNow(); m.lim.Mode() != mode; mode = k.modeNow() { // another call may have changed it
			m.lim.SetMode(mode)
		}
	}
}

func (k *Keyed) modeNow() Mode {
	k.lock()
	defer k.mu.Unlock()
	return k.mode
}

// Open reports whether work is still taken in: false once Drain or Close was called.
func (k *Keyed) Open() bool {
	k.lock()
	defer k.mu.Unlock()
	return k.closed == 0
}

// Drain drains every limiter, and those of later keys refuse from the start. All
// must end before ctx does; the error is a *spillway.DrainError over all.
func (k *Keyed) Drain(ctx context.Context) error {
	k.close(spillway.Draining)
	members := k.members()
	for _, m := range members { // no intake stays open while another drains
		m.lim.closeIntake(spillway.Draining)
	}
	var sum spillway.DrainError
	for _, m := range members {
		if d, ok := errors.AsType[*spillway.DrainError](m.lim.Drain(ctx)); ok {
			sum.Dropped += d.Dropped
			sum.Running += d.Running
			sum.Cause = d.Cause
		}
	}
	if sum.Cause != nil {
		return &sum
	}
	return nil
}

// Close closes every limiter, and those of later keys refuse from the start.
func (k *Keyed) Close() {
	k.close(spillway.Closed)
	for _, m := range k.members() {
		m.lim.Close()
	}
}

func (k *Keyed) close(reason spillway.Reason) {
	k.lock()
	defer k.mu.Unlock()
	if k.closed != spillway.Closed {
		k.closed = reason
	}
}
