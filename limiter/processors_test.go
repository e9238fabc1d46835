package limiter

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/processors"
	"github.com/spillway-go/spillway/limit"
)

// crowd is a process of one processor. waiting goroutines wait for the processor, and each takes a
// millisecond. With fall, each reading leaves fewer waiting goroutines.
type crowd struct {
	waiting atomic.Int64
	fall    bool
}

func (c *crowd) read() (processors.Reading, bool) {
	n := c.waiting.Load()
	if c.fall && n > 150 {
		c.waiting.Store(n * 97 / 100)
	}
	wait := float64(n) / 1000
	return processors.Reading{Runnable: int(n), Waited: wait, Squares: wait * wait}, true
}

// crowded returns a limiter in virtual time that watches a crowd.
func crowded(t *testing.T, cfg Config) (*Limiter, *crowd) {
	t.Helper()
	c := &crowd{fall: true}
	l := configured(t, cfg)
	l.door.monitor = processors.New(time.Now(), c.read)
	l.due.Store(0)
	return l, c
}

// ask sends n calls that take no time, one per millisecond, and returns how many are admitted.
func ask(t *testing.T, l *Limiter, n int, r Request) (admitted int) {
	t.Helper()
	for range n {
		time.Sleep(time.Millisecond)
		p, err := l.AcquireWith(t.Context(), r)
		if rej, ok := errors.AsType[*spillway.Rejection](err); ok && (rej.Reason != spillway.ReasonScheduler || rej.RetryAfter <= 0) {
			t.Fatalf("refused with %v", err)
		}
		if err == nil {
			admitted++
		}
		p.Done(nil)
	}
	return admitted
}

func TestWhatArrivesIsShedWhileProcessorsAreShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := crowded(t, Config{})
		if n := ask(t, l, 1000, Request{}); n != 1000 {
			t.Fatalf("%d of 1,000 calls are admitted while nobody waits", n)
		}
		c.waiting.Store(500)
		if n := ask(t, l, 800, Request{}); n > 500 || n < 10 {
			t.Errorf("%d of 800 calls are admitted behind 500 goroutines", n)
		}
		s := l.Stats()
		if s.RejectedBy[spillway.ReasonScheduler] == 0 || s.RejectedBy[spillway.ReasonScheduler] != s.Rejected || s.Offered != 1800 || s.Demand < 2 ||
			l.door.stats().Admitted > .5 || l.door.stats().Wait < 200*time.Millisecond || !strings.HasPrefix(s.State, "processors are short: requests wait ") {
			t.Errorf("%+v", s)
		}
		c.waiting.Store(0)
		ask(t, l, 1000, Request{})
		if n := ask(t, l, 1000, Request{}); n != 1000 || strings.Contains(l.Stats().State, "short") || l.door.stats().Admitted != 1 {
			t.Errorf("%d of 1,000 calls are admitted a second later: %s", n, l.Stats().State)
		}
		atRest(t, l)
	})
}

func TestOfWhatArrivesTheLeastImportantIsShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := crowded(t, Config{})
		c.waiting.Store(130)
		critical, low := 0, 0
		for range 600 { // until about a half is shed
			low += ask(t, l, 1, Request{Priority: spillway.Low})
			critical += ask(t, l, 1, Request{Priority: spillway.Critical})
			if l.door.stats().Admitted < .55 {
				c.waiting.Store(100)
			}
		}
		if critical < 590 || low > 400 {
			t.Errorf("%d of 600 critical calls are admitted, and %d of 600 of low priority", critical, low)
		}
	})
}

func TestWhoShedsForWantOfProcessors(t *testing.T) {
	for name, c := range map[string]struct {
		cfg   Config
		r     Request
		front bool // another limiter is at the front
		most  int  // most admitted calls of 1,000
		least int
		would uint64
	}{
		"by default":          {most: 500},
		"in a dry run":        {cfg: Config{Mode: DryRun}, most: 1000, least: 1000, would: 300},
		"a dry request":       {r: Request{DryRun: true}, most: 1000, least: 1000, would: 300},
		"off":                 {cfg: Config{Mode: Off}, most: 1000, least: 1000},
		"a bound of refusals": {cfg: Config{MaxRefused: .1}, most: 950, least: 850},
		"behind the front":    {front: true, most: 1000, least: 1000},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, crowd := crowded(t, c.cfg)
			if c.front {
				l.door.monitor.Front()
			}
			crowd.waiting.Store(500)
			n := ask(t, l, 1000, c.r)
			s := l.Stats()
			if n > c.most || n < c.least || s.WouldRejectBy[spillway.ReasonScheduler] < c.would {
				t.Errorf("%s: %d of 1,000 are admitted, %d would not be: %+v", name, n, s.WouldRejectBy[spillway.ReasonScheduler], s)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		if l := configured(t, Config{}); l.door.monitor != nil {
			t.Error("a limiter in virtual time looks at real processors")
		}
	})
	for name, cfg := range map[string]Config{"ignored": {IgnoreProcessors: true}, "a law of the user's": {Law: limit.NewFixed(3)}} {
		if l := configured(t, cfg); l.door.monitor != nil {
			t.Errorf("%s: processors are watched", name)
		}
	}
	if l := configured(t, Config{}); l.door.monitor == nil {
		t.Error("processors are not watched")
	}
}

// If nine in ten calls are in a dry run, the tenth is not shed for the load of the others.
func TestACanaryIsNotShedForTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := crowded(t, Config{})
		c.waiting.Store(500)
		for i := range 2000 {
			if n := ask(t, l, 1, Request{DryRun: i%10 > 0}); n != 1 {
				t.Fatalf("call %d is refused", i)
			}
		}
	})
}

func TestAFamilyAtTheFrontShedsAlso(t *testing.T) {
	k := keyedBy(t, KeyedConfig{})
	before, err := k.Get("before")
	if err != nil {
		t.Fatal(err)
	}
	if before.door.front.Load() {
		t.Error("at the front though nobody said so")
	}
	other := processors.New(time.Now(), func() (r processors.Reading, ok bool) { return r, ok })
	before.door.monitor = other // a change of the process's own monitor would last for other tests
	k.Front()
	if !before.door.front.Load() {
		t.Error("a limiter of an earlier key is not at the front")
	}
}

// Many are refused when processors are short, and the lock would hold up those who are not.
func TestARefusalForLackOfProcessorsTakesNoLock(t *testing.T) {
	l := configured(t, Config{})
	l.memos.expect(spillway.ReasonScheduler)
	l.mu.Lock()
	rej := l.shed(l.now(), &gate.Arrival{Cost: 1, Deadline: gate.Never}) // waits for ever if it takes the lock
	l.mu.Unlock()
	if s := l.Stats(); rej.Reason != spillway.ReasonScheduler || s.RejectedBy[spillway.ReasonScheduler] != 1 || s.Offered != 1 {
		t.Errorf("%v, %+v", rej, s)
	}
}

func TestSheddingForProcessorsAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := crowded(t, Config{})
		c.waiting.Store(500)
		ask(t, l, 500, Request{})
		before := l.Stats().RejectedBy[spillway.ReasonScheduler]
		n := testing.AllocsPerRun(1000, func() {
			p, _ := l.Acquire(t.Context())
			p.Done(nil)
		})
		if shed := l.Stats().RejectedBy[spillway.ReasonScheduler] - before; n != 0 || shed < 300 {
			t.Errorf("%v allocations, %d of 1,000 calls are shed", n, shed)
		}
	})
}

// A limiter behind the front does not report its arrivals to the monitor. Otherwise a dry run behind
// the front would end the shedding at the front.
func TestALimiterBehindTheFrontIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		front, c := crowded(t, Config{})
		c.waiting.Store(500)
		behind := configured(t, Config{Mode: DryRun})
		behind.door.monitor = front.door.monitor
		behind.due.Store(0)
		front.Front()
		admitted := 0
		for range 800 {
			admitted += ask(t, front, 1, Request{})
			for range 5 {
				p, err := behind.Acquire(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				p.Done(nil)
			}
		}
		if admitted > 500 || behind.Stats().WouldReject > 0 || behind.door.stats().Admitted != 1 {
			t.Errorf("%d of 800 are admitted in front; behind: %+v", admitted, behind.Stats())
		}
	})
}

// A limiter that ignores the processors may be at the front too.
func TestTheFrontIsKnownToAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, c := crowded(t, Config{})
		c.waiting.Store(500)
		outer := configured(t, Config{IgnoreProcessors: true})
		outer.front(inner.door.monitor)
		if n := ask(t, inner, 800, Request{}); n != 800 {
			t.Errorf("%d of 800 are admitted behind the front", n)
		}
	})
}

// Work that is shed counts with its cost, and long work with a cost of zero.
func TestShedWorkCountsWithItsSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, r := range map[string]Request{"ten slots": {Cost: 10}, "long": {Long: true}} {
			l, c := crowded(t, Config{})
			c.waiting.Store(500)
			n := ask(t, l, 800, r)
			s := l.Stats()
			if int(s.Offered) != 800 || int(s.Rejected) != 800-n || n > 500 || s.RejectedBy[spillway.ReasonScheduler] != s.Rejected {
				t.Errorf("%s: %d admitted: %+v", name, n, s)
			}
			atRest(t, l)
		}
	})
}

// A dry run counts each piece of work once, although much of it would wait.
func TestADryRunCountsEachRefusalOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		would := 0
		l, c := crowded(t, Config{Mode: DryRun, Law: limit.NewFixed(2), Observer: &Observer{WouldReject: func(spillway.Priority, *spillway.Rejection) { would++ }}})
		c.fall = false
		c.waiting.Store(500)
		for range 1000 {
			time.Sleep(time.Millisecond)
			p, err := l.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				time.Sleep(time.Second)
				p.Done(nil)
			}()
		}
		time.Sleep(5 * time.Second)
		if s := l.Stats(); s.WouldReject > 1000 || int(s.WouldReject) != would || s.WouldRejectBy[spillway.ReasonScheduler] < 30 {
			t.Errorf("%d were told: %+v", would, s)
		}
	})
}

// The processors are watched even while a user-defined signal hangs.
func TestASignalThatHangsDoesNotStopTheWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		calls := 0
		l, c := crowded(t, Config{Signals: []Signal{Gauge("slow", func() float64 {
			if calls++; calls > 1 {
				<-hang
			}
			return 0
		}, 1)}})
		c.waiting.Store(500)
		ask(t, l, 50, Request{})
		go func() {
			time.Sleep(60 * time.Millisecond)
			p, _ := l.Acquire(t.Context())
			p.Done(nil)
		}()
		time.Sleep(time.Second)
		ask(t, l, 800, Request{})
		c.waiting.Store(0)
		ask(t, l, 1000, Request{})
		if n := ask(t, l, 1000, Request{}); n != 1000 {
			t.Errorf("%d of 1,000 are admitted after the overload", n)
		}
		close(hang)
	})
}
