package objectpool

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// patient has memory of every kind: in itself, behind a slice, in a map, and behind a pointer.
type patient struct {
	id    int
	ctx   context.Context
	name  []byte
	tags  map[string]string
	notes *notes
}

type notes struct{ lines int }

func newPatient() *patient {
	return &patient{name: make([]byte, 0, 64), tags: map[string]string{}, notes: &notes{}}
}

func (p *patient) reset() {
	clear(p.name[:cap(p.name)])
	clear(p.tags)
	*p.notes = notes{}
	p.id, p.ctx, p.name = 0, nil, p.name[:0]
}

// fill writes to a patient as a user does.
func (p *patient) fill() *patient {
	p.id = 1
	p.name = append(p.name, "somebody"...)
	p.tags["ward"] = "7"
	p.notes.lines++
	return p
}

var (
	sink   int
	nobody = newPatient() // the shared result of a search without a match
)

// elsewhere runs f repeatedly in another goroutine.
func elsewhere(f func()) {
	go func() {
		for range 1000 {
			f()
			runtime.Gosched()
		}
	}()
}

// bugs are programs that misuse a pool once. Where asan is false, the misused memory lies behind a
// pointer or in a map, and is not poisoned.
var bugs = []struct {
	name string
	asan bool
	run  func(p *Pool[patient])
}{
	{"read after put", true, func(p *Pool[patient]) {
		r := p.Get().fill()
		p.Put(r)
		sink = r.id
	}},
	{"write after put", true, func(p *Pool[patient]) {
		r := p.Get().fill()
		p.Put(r)
		r.id = 2
	}},
	{"put twice", true, func(p *Pool[patient]) {
		r := p.Get().fill()
		p.Put(r)
		p.Put(r)
	}},
	{"put while sent to another goroutine", true, func(p *Pool[patient]) {
		queue := make(chan *patient, 1)
		go func() {
			r := <-queue
			for range 1000 {
				sink = r.id
				runtime.Gosched()
			}
		}()
		r := p.Get().fill()
		queue <- r
		p.Put(r)
	}},
	{"held by a goroutine of its user", true, func(p *Pool[patient]) {
		r := p.Get().fill()
		defer p.Put(r)
		elsewhere(func() { sink = len(r.name) })
	}},
	{"slice read after put", true, func(p *Pool[patient]) {
		r := p.Get().fill()
		name := r.name
		p.Put(r)
		sink = int(name[3])
	}},
	{"map read after put", false, func(p *Pool[patient]) {
		r := p.Get().fill()
		tags := r.tags
		p.Put(r)
		sink = len(tags["ward"])
	}},
	{"child read after put", false, func(p *Pool[patient]) {
		r := p.Get().fill()
		child := r.notes
		p.Put(r)
		sink = child.lines
	}},
	{"put of what others share", true, func(p *Pool[patient]) {
		elsewhere(func() { sink = nobody.id })
		p.Put(nobody)
	}},
	{"buffer's bytes read after put", true, func(*Pool[patient]) {
		b := NewBuffers(BuffersConfig{})
		x := b.Get(1000)
		x.WriteString("somebody")
		bytes := x.Bytes()
		b.Put(x)
		sink = int(bytes[3])
	}},
	{"buffer put twice", true, func(*Pool[patient]) {
		b := NewBuffers(BuffersConfig{})
		x := b.Get(1000)
		x.WriteString("somebody")
		b.Put(x)
		b.Put(x)
	}},
	{"large buffer put twice", true, func(*Pool[patient]) {
		b := NewBuffers(BuffersConfig{})
		x := b.Get(4 << 20)
		b.Put(x)
		b.Put(x)
	}},
	{"large buffer read after put", true, func(*Pool[patient]) {
		b := NewBuffers(BuffersConfig{})
		x := b.Get(4 << 20)
		bytes := x.Extend(10)
		b.Put(x)
		sink = int(bytes[3])
	}},
	{"large object put twice", true, func(*Pool[patient]) {
		p := New(Config[patient]{New: newPatient, Clear: (*patient).reset, MaxSize: 1})
		r := p.Get().fill()
		p.Put(r)
		p.Put(r)
	}},
	{"clear forgets a number", true, func(*Pool[patient]) {
		p := New(Config[patient]{New: newPatient, Clear: func(r *patient) { id := r.id; r.reset(); r.id = id }})
		p.Put(p.Get().fill())
	}},
	{"clear forgets a length", true, func(*Pool[patient]) {
		p := New(Config[patient]{New: newPatient, Clear: func(r *patient) { n := len(r.name); r.reset(); r.name = r.name[:n] }})
		p.Put(p.Get().fill())
	}},
	{"never put", true, func(p *Pool[patient]) {
		p.Get()
		if n := p.Stats().InUse; n != 0 {
			panic(fmt.Sprintf("LEAK: %d object was never put", n))
		}
	}},
}

const bugVariable = "OBJECTPOOL_TEST_BUG"

// TestEverySeededMisuseIsCaughtEveryTime runs each program in processes of its own, and expects
// each misuse to be caught.
func TestEverySeededMisuseIsCaughtEveryTime(t *testing.T) {
	if name := os.Getenv(bugVariable); name != "" {
		for _, bug := range bugs {
			if bug.name == name {
				bug.run(New(Config[patient]{New: newPatient, Clear: (*patient).reset}))
			}
		}
		for runtime.NumGoroutine() > 2 { // until every goroutine that Put started has ended
			runtime.Gosched()
		}
		return
	}
	everyMisuseIsCaught(t, 2)
}

func everyMisuseIsCaught(t *testing.T, runsPerBug int) {
	if !checked {
		t.Skip("misuse is only caught by builds that look for it: run with -race, as CI does, or with -asan")
	}
	type run struct{ bug, out string }
	missed := make(chan run, len(bugs)*runsPerBug)
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for _, bug := range bugs {
		if asanEnabled && !bug.asan {
			continue
		}
		for range runsPerBug {
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				if out, caught := misuse(bug.name); !caught {
					missed <- run{bug.name, out}
				}
			})
		}
	}
	wg.Wait()
	close(missed)
	for m := range missed {
		t.Errorf("%s: not caught\n%s", m.bug, m.out)
	}
}

// misuse runs one bug and reports whether it was caught with the right report.
func misuse(bug string) (out string, caught bool) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestEverySeededMisuseIsCaughtEveryTime$")
	cmd.Env = append(os.Environ(), bugVariable+"="+bug, "GORACE=halt_on_error=1 atexit_sleep_ms=0")
	raw, err := cmd.CombinedOutput()
	out = string(raw)
	for _, sign := range []string{"DATA RACE", "AddressSanitizer: use-after-poison", "objectpool: Clear left", "LEAK: "} {
		caught = caught || err != nil && strings.Contains(out, sign)
	}
	return out, caught
}

func TestCorrectUseRaisesNoAlarm(t *testing.T) { correctUseRaisesNoAlarm(t, 40_000) }

// correctUseRaisesNoAlarm runs cycles in which objects are handed on, shared and grown, but always
// put once, by their last user.
func correctUseRaisesNoAlarm(t *testing.T, cycles int) {
	if !checked {
		t.Skip("there are no alarms in this build: run with -race, as CI does, or with -asan")
	}
	const users = 4
	p := New(Config[patient]{New: newPatient, Clear: (*patient).reset})
	buffers := NewBuffers(BuffersConfig{MaxSize: 4096})
	queue := make(chan *patient, 16)
	var wg, receivers sync.WaitGroup
	receivers.Go(func() {
		for r := range queue {
			r.fill()
			p.Put(r)
		}
	})
	for range users {
		wg.Go(func() {
			for i := range cycles / users {
				switch r := p.Get().fill(); {
				case i%64 == 0:
					queue <- r
				case i%64 == 1:
					var reader sync.WaitGroup
					reader.Go(func() { sink := r.id + len(r.tags); _ = sink })
					reader.Wait()
					p.Put(r)
				case i%64 == 2:
					x := buffers.Get(i % 2000)
					x.WriteString("somebody")
					x.Extend(i % 8000)
					buffers.Put(x)
					p.Put(r)
				default:
					p.Put(r)
				}
			}
		})
	}
	wg.Wait()
	close(queue)
	receivers.Wait()
	if s := p.Stats(); s.Gets != uint64(cycles) || s.InUse != 0 {
		t.Errorf("%+v", s)
	}
}
