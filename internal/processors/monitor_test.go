package processors

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// queue is a source of readings: waiting goroutines wait for one processor, and each takes a
// millisecond.
type queue struct{ waiting int }

func (q *queue) read() (Reading, bool) {
	wait := float64(q.waiting) / 1000
	return Reading{Runnable: q.waiting, Waited: wait, Squares: wait * wait}, true
}

func TestAMonitorShedsAtItsDoors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &queue{waiting: 400}
		m := New(time.Now(), q.read)
		look := func(n int) {
			for range n {
				time.Sleep(Every)
				m.Look(door(30))
			}
		}
		if look(4); m.Sheds(false) && m.State().Share < 1 {
			t.Errorf("the first readings shed: %+v", m.State())
		}
		look(4)
		if s := m.State(); s.Share == 1 || s.Wait != 400*time.Millisecond || m.Delay() != s.Wait || s.Aim != 100*time.Millisecond || !m.Sheds(false) || !m.Sheds(true) {
			t.Errorf("behind 400 goroutines: %+v", s)
		}
		admitted := 0
		for range 10_000 {
			if m.Admits(1, 0) {
				admitted++
			}
			if !m.Admits(1, 1) {
				t.Fatal("what must be admitted is not")
			}
		}
		if want := 10_000 * m.State().Share; float64(admitted) < .8*want-50 || float64(admitted) > 1.2*want+50 {
			t.Errorf("%d of 10,000 are admitted, want %v", admitted, want)
		}
		if m.Front(); m.Sheds(false) || !m.Sheds(true) || !m.Fronted() {
			t.Error("what stands behind a door sheds")
		}
		time.Sleep(stale + 1)
		if s := m.State(); s.Share != 1 || s.Wait != 0 || m.Delay() != 0 {
			t.Errorf("a second later: %+v, %v", s, m.Delay())
		}
		q.waiting = 0
		if look(2); m.Sheds(true) || !m.WouldAdmit() || m.State().Share != 1 {
			t.Errorf("nobody waits any more: %+v", m.State())
		}
	})
}

// Limiters look every 40 ms, at different times. A reading is taken at most every 20 ms, and contains
// the events at all limiters.
func TestReadingsAreFewAndHaveAllThatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		readings := 0
		m := New(time.Now(), func() (Reading, bool) { readings++; return Reading{}, true })
		for range 1000 {
			m.Look(door(1))
			m.Look(door(2))
			time.Sleep(time.Millisecond)
		}
		if readings != 50 {
			t.Errorf("%d readings in a second", readings)
		}
		if n, rate := m.control.arrivals(); n < 1000 || rate < 2990 || rate > 3010 {
			t.Errorf("%v arrivals, %v a second", n, rate)
		}
	})
}

// A machine without a battery for its clock begins in 1970, or when its firmware was written.
func TestAMachineWhoseClockIsWrongHasAMonitor(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, wrong := range []time.Duration{-56 * year, -10 * year, 10 * year} {
		if at := time.Now().Add(wrong); Of(at) == nil {
			t.Errorf("no monitor where the year is %d", at.Year())
		}
	}
}

// The runtime measures in real time, so a limiter in virtual time must not take readings.
func TestVirtualTimeAndRealProcessorsDoNotMeet(t *testing.T) {
	m := New(time.Now(), func() (Reading, bool) { t.Error("read"); return Reading{}, false })
	synctest.Test(t, func(t *testing.T) {
		if Of(time.Now()) != nil {
			t.Error("the monitor of the process in virtual time")
		}
		m.Look(door(1))
	})
	if one := Of(time.Now()); one == nil || one != Of(time.Now()) {
		t.Error("a process has one monitor")
	}
	if none := (*Monitor)(nil); none.Delay() != 0 || none.State() != (State{Share: 1}) {
		t.Error("what no monitor says")
	}
}

func TestTheRuntimeIsRead(t *testing.T) {
	source := runtimeSource()
	if r, ok := source(); !ok || r.Waited != 0 {
		t.Fatalf("the first reading: %+v, %v", r, ok)
	}
	for range 1000 { // one transition in eight is timed
		go func() {}()
		runtime.Gosched()
	}
	if r, ok := source(); !ok || r.Waited <= 0 || r.Squares <= 0 || r.Runnable < 0 {
		t.Errorf("%+v, %v", r, ok)
	}
	if n := testing.AllocsPerRun(100, func() { source() }); n > 0 {
		t.Errorf("a reading allocates %v times", n)
	}
}

// A monitor sheds nothing if its source has no reading.
func TestAMonitorWithoutAReadingShedsNothing(t *testing.T) {
	m := New(time.Now(), func() (Reading, bool) { return Reading{Runnable: 1e6, Waited: 1e6, Squares: 1e9}, false })
	for range 10 {
		m.Look(door(100))
	}
	if m.Sheds(true) || !m.Admits(3, 0) {
		t.Errorf("%+v", m.State())
	}
}
