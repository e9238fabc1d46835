package limiter

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/processors"
	"github.com/spillway-go/spillway/limit"
)

// crowd is a process of one processor for which so many goroutines wait, a millisecond for each of those
// before them. They become fewer while they are looked at, if that is said.
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

// crowded returns a limiter of a process like that, in virtual time.
func crowded(t *testing.T, cfg Config) (*Limiter, *crowd) {
	t.Helper()
	c := &crowd{fall: true}
	l := configured(t, cfg)
	l.door.watch(processors.New(time.Now(), c.read), l.door.least)
	l.due.Store(0)
	return l, c
}

// ask sends so many calls of no length, one in each millisecond, and returns how many of them are admitted.
func ask(t *testing.T, l *Limiter, n int, r Request) (admitted int) {
	t.Helper()
	for range n {
		time.Sleep(time.Millisecond)
		p, err := l.AcquireWith(t.Context(), r)
		if rej, ok := errors.AsType[*spillway.Rejection](err); ok && (rej.Reason != spillway.Scheduler || rej.RetryAfter <= 0) {
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
		if s.RejectedBy[spillway.Scheduler] == 0 || s.RejectedBy[spillway.Scheduler] != s.Rejected || s.Offered != 1800 || s.Demand < 2 ||
			s.Processors.Admitted > .5 || s.Processors.Wait < 200*time.Millisecond || !strings.HasPrefix(s.State, "processors are short: requests wait ") {
			t.Errorf("%+v", s)
		}
		c.waiting.Store(0)
		ask(t, l, 1000, Request{})
		if n := ask(t, l, 1000, Request{}); n != 1000 || strings.Contains(l.Stats().State, "short") || l.Stats().Processors.Admitted != 1 {
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
			if l.Stats().Processors.Admitted < .55 {
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
		front bool // another limiter is there
		most  int  // admitted of 1,000
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
			if n > c.most || n < c.least || s.WouldRejectBy[spillway.Scheduler] < c.would {
				t.Errorf("%s: %d of 1,000 are admitted, %d would not be: %+v", name, n, s.WouldRejectBy[spillway.Scheduler], s)
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

// Once all but a quarter are shed and nothing becomes better, the wait is somebody else's.
func TestSheddingInVainEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := crowded(t, Config{})
		c.fall = false
		c.waiting.Store(500)
		ask(t, l, 1500, Request{})
		if n := ask(t, l, 1000, Request{}); n != 1000 {
			t.Errorf("%d of 1,000 calls are admitted although to refuse them did not help", n)
		}
		if s := l.Stats(); !strings.HasPrefix(s.State, "processors are short: requests wait 500ms for one; ") || s.Processors.Admitted != 1 {
			t.Errorf("%+v", s)
		}
	})
}

// Nobody looks while nothing comes. What was read before says nothing then.
func TestAnIdleLimiterForgetsTheProcessors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := crowded(t, Config{})
		c.waiting.Store(500)
		ask(t, l, 500, Request{})
		if s := l.Stats(); s.Processors.Admitted == 1 || s.Demand <= 1 || l.door.monitor.Delay() == 0 {
			t.Fatalf("nothing is shed: %+v", s)
		}
		time.Sleep(time.Minute)
		if s := l.Stats(); s.Processors.Admitted != 1 || s.Processors.Wait != 0 || s.Demand > 0 || strings.Contains(s.State, "short") || l.door.monitor.Delay() != 0 {
			t.Errorf("a minute later: %+v", s)
		}
		c.waiting.Store(0)
		if n := ask(t, l, 100, Request{}); n != 100 {
			t.Errorf("%d of 100 calls are admitted", n)
		}
	})
}

// A canary of one in ten is not refused for what the others bring.
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
	k, err := NewKeyed(KeyedConfig{})
	if err != nil {
		t.Fatal(err)
	}
	before, err := k.Get("before")
	if err != nil {
		t.Fatal(err)
	}
	if before.door.front.Load() {
		t.Error("at the front though nobody said so")
	}
	other := processors.New(time.Now(), func() (r processors.Reading, ok bool) { return r, ok })
	before.door.monitor = other // the process has one, and it would stay as it is for other tests
	k.Front()
	if !before.door.front.Load() {
		t.Error("a limiter of an earlier key is not at the front")
	}
}

func TestSheddingForProcessorsAllocatesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := crowded(t, Config{})
		c.waiting.Store(500)
		ask(t, l, 500, Request{})
		before := l.Stats().RejectedBy[spillway.Scheduler]
		n := testing.AllocsPerRun(1000, func() {
			p, _ := l.Acquire(t.Context())
			p.Done(nil)
		})
		if shed := l.Stats().RejectedBy[spillway.Scheduler] - before; n != 0 || shed < 300 {
			t.Errorf("%v allocations, %d of 1,000 calls are shed", n, shed)
		}
	})
}

// A limiter behind the front is told nothing of the arrivals there, so it says nothing of its own: a dry run
// behind the front would otherwise end the shedding in front.
func TestALimiterBehindTheFrontIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		front, c := crowded(t, Config{})
		c.waiting.Store(500)
		behind := configured(t, Config{Mode: DryRun})
		behind.door.watch(front.door.monitor, 0)
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
		if admitted > 500 || behind.Stats().WouldReject > 0 || behind.Stats().Processors.Admitted != 1 {
			t.Errorf("%d of 800 are admitted in front; behind: %+v", admitted, behind.Stats())
		}
	})
}

// A limiter that ignores the processors is at the front all the same.
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

// Shed work counts with its slots. Long work counts none.
func TestShedWorkCountsWithItsSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, r := range map[string]Request{"ten slots": {Cost: 10}, "long": {Long: true}} {
			l, c := crowded(t, Config{})
			c.waiting.Store(500)
			n := ask(t, l, 800, r)
			s := l.Stats()
			if int(s.Offered) != 800 || int(s.Rejected) != 800-n || n > 500 || s.RejectedBy[spillway.Scheduler] != s.Rejected {
				t.Errorf("%s: %d admitted: %+v", name, n, s)
			}
			atRest(t, l)
		}
	})
}

// A dry run counts each piece of work once, although its shadow queues much of it.
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
		if s := l.Stats(); s.WouldReject > 1000 || int(s.WouldReject) != would || s.WouldRejectBy[spillway.Scheduler] < 30 {
			t.Errorf("%d were told: %+v", would, s)
		}
	})
}

// While a user's signal hangs, the processors are watched all the same.
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
