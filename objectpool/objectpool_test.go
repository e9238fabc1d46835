package objectpool

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
)

type record struct {
	id   int
	name []byte
	tags map[string]string
}

func (r *record) reset() {
	r.id = 0
	clear(r.name[:cap(r.name)])
	r.name = r.name[:0]
	clear(r.tags)
}

func records(debug bool) *Pool[record] {
	return New(Config[record]{
		New:   func() *record { return &record{tags: map[string]string{}} },
		Clear: (*record).reset,
		Debug: debug,
	})
}

func TestEveryObjectArrivesClearedUnderLoad(t *testing.T) {
	p := records(false)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 2000 {
				r := p.Get()
				if r.id != 0 || len(r.name) != 0 || len(r.tags) != 0 || bytes.ContainsFunc(r.name[:cap(r.name)], func(c rune) bool { return c != 0 }) {
					t.Errorf("got somebody's data: %+v", r)
					return
				}
				r.id = g*10_000 + i + 1
				r.name = append(r.name, fmt.Sprintf("patient %d", r.id)...)
				r.tags["owner"] = "me"
				p.Put(r)
			}
		})
	}
	wg.Wait()
}

func TestTheZeroConfigClearsToTheZeroValue(t *testing.T) {
	p := New(Config[record]{})
	r := p.Get()
	r.id = 7
	p.Put(r)
	p.Put(nil)
	if again := p.Get(); again.id != 0 {
		t.Fatalf("%+v", again)
	}
}

func TestDebugModePanicsOnMisuse(t *testing.T) {
	for _, c := range []struct {
		name, says string
		misuse     func(p *Pool[record])
	}{
		{"double put", "put twice", func(p *Pool[record]) { r := p.Get(); p.Put(r); p.Put(r) }},
		{"foreign put", "never gave", func(p *Pool[record]) { p.Put(&record{}) }},
		{"write after put", "changed after Put", func(p *Pool[record]) { r := p.Get(); p.Put(r); r.id = 9; p.Get() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer func() {
				if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), c.says) {
					t.Fatalf("recovered %v, want something with %q", v, c.says)
				}
			}()
			c.misuse(records(true))
		})
	}
}

func TestDebugModeNeverHandsAnObjectOutTwiceAndAcceptsCorrectUse(t *testing.T) {
	p := records(true)
	seen := map[*record]bool{}
	for range 200 {
		r := p.Get()
		if seen[r] {
			t.Fatal("the same object again")
		}
		seen[r] = true
		r.id = 1
		r.tags["a"] = "b"
		p.Put(r)
	}
}

func TestReuseRateCountsOnlyTrueReuse(t *testing.T) {
	p := records(false)
	for range 50 {
		p.Get() // never put
	}
	if s := p.Stats(); s.Gets != 50 || s.Reused != 0 {
		t.Fatalf("nothing was ever put, and yet %+v", s)
	}
}

func TestAllocsOfASteadyLoop(t *testing.T) {
	if checked {
		t.Skip("builds that look for misuse allocate; run without -race and -asan")
	}
	p := records(false)
	p.Put(p.Get())
	if n := testing.AllocsPerRun(1000, func() { p.Put(p.Get()) }); n != 0 {
		t.Fatalf("%v allocations", n)
	}
	if s := p.Stats(); 100*s.Reused < 99*s.Gets {
		t.Fatalf("%d of %d were reused in a steady loop", s.Reused, s.Gets)
	}
}

// A zero value once caused a nil dereference, or buffers that were never reused.
func TestZeroValuesSayWhatToCall(t *testing.T) {
	for want, use := range map[string]func(){
		"use New":        func() { new(Pool[int]).Get() },
		" use New":       func() { new(Pool[int]).Put(new(int)) },
		"use NewBuffers": func() { new(Buffers).Get(1) },
		" use NewBuffers": func() {
			x := new(Buffer)
			x.Extend(1000)
			new(Buffers).Put(x)
		},
	} {
		func() {
			defer func() {
				if said, ok := recover().(string); !ok || !strings.HasSuffix(said, want) {
					t.Errorf("%q, want %q", said, want)
				}
			}()
			use()
		}()
	}
	if s := new(Buffers).Stats(); s != (Stats{}) {
		t.Errorf("%+v", s)
	}
	if s := new(Pool[int]).Stats(); s != (Stats{}) {
		t.Errorf("%+v", s)
	}
}
