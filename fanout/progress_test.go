package fanout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/spillway-go/spillway"
)

func TestWhatTheEndOfAnAttemptMeans(t *testing.T) {
	const waiting, busy = true, true
	deadline, canceled, other := context.DeadlineExceeded, context.Canceled, errors.New("other")
	one, two, settled := state{running: 1}, state{running: 2}, state{running: 1, settled: true}
	for _, c := range []struct {
		name        string
		end         ending
		state       state
		waits, busy bool
		want        verdict
	}{
		{"an answer", ending{}, one, waiting, !busy, verdict{settles, false, nil}},
		{"an answer while the other attempt runs", ending{}, two, waiting, !busy, verdict{settles, false, nil}},
		{"an answer after the other attempt failed", ending{attempt: 1}, state{running: 1, spare: other}, waiting, !busy, verdict{settles, false, nil}},
		{"an error", ending{err: errDown}, one, waiting, !busy, verdict{settles, false, errDown}},
		{"an error while the other attempt runs", ending{err: errDown}, two, waiting, !busy, verdict{spare, false, errDown}},
		{"the first attempt fails last", ending{err: errDown}, state{running: 1, spare: other}, waiting, !busy, verdict{settles, false, errDown}},
		{"the second attempt fails last", ending{attempt: 1, err: errDown}, state{running: 1, spare: other}, waiting, !busy, verdict{settles, false, other}},

		{"the answer of another attempt came first", ending{}, settled, waiting, !busy, verdict{}},
		{"the call is closed", ending{err: errDown}, one, !waiting, !busy, verdict{}},
		{"the call is closed, and the context has ended", ending{err: errDown, over: canceled}, one, !waiting, busy, verdict{}},

		{"the context's error", ending{err: deadline, over: deadline, matches: true, own: true}, one, waiting, !busy, verdict{settles, true, deadline}},
		{"the context's error while the other attempt runs", ending{err: deadline, over: deadline, matches: true}, two, waiting, !busy, verdict{spare, true, deadline}},
		{"an error after the end of the context", ending{err: errDown, over: canceled}, one, waiting, !busy, verdict{overdue, true, canceled}},
		{"an error after the end of the context while the other attempt runs", ending{err: errDown, over: canceled}, two, waiting, !busy, verdict{overdue, true, canceled}},
		{"an answer that the caller waited for", ending{over: deadline}, one, waiting, !busy, verdict{settles, false, nil}},
		{"an answer to a caller that was busy", ending{over: deadline}, one, waiting, busy, verdict{overdue, true, deadline}},
	} {
		if got := judge(&c.end, &c.state, c.waits, c.busy); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// event is what happens to a branch.
type event struct {
	kind   eventKind
	branch int
	ending
}

type eventKind int

const (
	starts  eventKind = iota // an attempt starts
	refused                  // the branch is not started
	ends                     // an attempt ends
	expires                  // the branch's own deadline passes
	exits                    // an attempt calls runtime.Goexit
)

// history is all that has happened in a call.
type history struct {
	required []bool
	busy     bool
	left     error // error with which the caller's context ends
	events   []event
	closed   bool // by the end of the caller's context, unless the call was over
}

// result returns the result of branch i after the given events.
func (h history) result(i int, events []event) (settled bool, err error) {
	running, first := 0, error(nil)
	for _, e := range events {
		if e.branch != i {
			continue
		}
		switch e.kind {
		case starts:
			running++
			continue
		case refused:
			return true, tooLate
		case expires:
			return true, context.DeadlineExceeded
		case exits:
			running--
			continue
		}
		running--
		noticed := e.over != nil && (h.busy || e.err != nil)
		switch {
		case noticed && !e.matches:
			return true, e.over
		case e.err == nil:
			return true, nil
		case noticed:
			e.err = e.over
		}
		if first == nil || e.attempt == 0 {
			first = e.err
		}
		if running == 0 {
			return true, first
		}
	}
	return false, nil
}

// twin says what the whole history means.
func (h history) twin() string {
	phase, failure, counted := open, error(nil), h.events
	for k := range h.events {
		unsettled := 0
		for i, required := range h.required {
			settled, err := h.result(i, h.events[:k+1])
			if !settled {
				unsettled++
			}
			if err != nil && required && phase == open {
				phase, failure = failed, &BranchError{fmt.Sprint(i), err}
			}
		}
		switch {
		case h.events[k].kind == exits:
			phase = exited
		case phase == open && unsettled == 0:
			phase = answered
		}
		if phase != open {
			counted = h.events[:k+1]
			break
		}
	}
	for _, e := range h.events {
		if e.kind == exits {
			phase = exited
		}
	}
	if phase == exited || !h.closed {
		return fmt.Sprint(phase)
	}
	var cut error
	if phase == open {
		cut = h.left
	}
	for k, e := range counted {
		settled, _ := h.result(e.branch, counted[:k])
		if e.kind == ends && !settled && e.over != nil && !e.own && (h.busy || e.err != nil) {
			cut = h.left
		}
	}
	var missing []string
	var wins error
	for i, required := range h.required {
		settled, err := h.result(i, counted)
		if !settled {
			err = cut
		}
		if err == nil {
			continue
		}
		missing = append(missing, fmt.Sprintf("%d%v", i, err))
		if required && wins == nil {
			wins = &BranchError{fmt.Sprint(i), err}
		}
	}
	switch {
	case missing != nil && cut == context.Canceled:
		wins = cut
	case cut == nil && failure != nil:
		wins = failure
	}
	return fmt.Sprint(phase, missing, wins)
}

// FuzzProgress compares the state of a call after each event with what a twin says of the whole
// history: which of the results counts, when the call is over, which error wins. Each late branch
// must end once.
func FuzzProgress(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte{0b0100, 0, 0, 0, 8, 1, 0, 9})
	f.Add([]byte{0b1101, 0, 1, 2, 40, 0, 2, 2, 2, 7, 90, 12, 1, 3, 5, 4, 200, 1})
	f.Add([]byte{0b11110, 1, 1, 0, 0, 2, 1, 2, 2, 2, 3, 2, 4, 2, 5, 3, 3, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 96 {
			return
		}
		next := func() int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int(b)
		}
		head := next()
		h := history{busy: head&1 != 0, left: context.DeadlineExceeded}
		if head&2 != 0 {
			h.left = context.Canceled
		}
		var p progress
		for i := range 1 + head>>2&3 {
			required := i < head>>4&3
			h.required = append(h.required, required)
			p.branches = append(p.branches, &spec{name: fmt.Sprint(i), required: required})
		}
		p.states = make([]state, len(p.branches))
		p.begin()
		p.busy = h.busy
		type run struct {
			branch  int
			attempt int8
		}
		var running []run // attempts
		hedged, ended := make([]bool, len(p.branches)), make([]int, len(p.branches))
		end := func(k int, e ending) {
			r := running[k]
			running = slices.Delete(running, k, k+1)
			e.attempt = r.attempt
			h.events = append(h.events, event{ends, r.branch, e})
			v := p.end(r.branch, &e)
			if v.effect == settles || v.effect == overdue {
				p.settle(r.branch, v.err, 0)
			}
			_, panicked := e.err.(*spillway.PanicError)
			returned := v.effect == settles && v.err == e.err
			if report, last := p.states[r.branch].unreported(e.err); last {
				ended[r.branch]++
			} else if report != (p.states[r.branch].late || panicked && !returned) {
				t.Fatalf("%+v: reported %v", h, report)
			}
		}
		begins := func(i int, attempt int8) {
			p.states[i].running++
			running = append(running, run{i, attempt})
			h.events = append(h.events, event{starts, i, ending{attempt: attempt}})
		}
		for len(data) > 0 {
			switch what, which := next()%8, next(); {
			case what < 2 && p.phase == open && p.nextBranch < len(p.branches):
				p.nextBranch++
				if which%8 == 0 {
					h.events = append(h.events, event{refused, p.nextBranch - 1, ending{}})
					p.settle(p.nextBranch-1, tooLate, 0)
				} else {
					begins(p.nextBranch-1, 0)
				}
			case what == 2 && p.phase == open && p.nextBranch > 0: // a second attempt
				if i := which % p.nextBranch; !hedged[i] && !p.states[i].settled && p.states[i].running == 1 {
					hedged[i] = true
					begins(i, 1)
				}
			case what < 6 && len(running) > 0:
				var e ending
				detail := next()
				if e.err = []error{nil, errDown, errors.New("other"), &spillway.PanicError{Value: "oh"}}[detail&3]; detail&4 != 0 {
					e.own = detail&8 != 0
					if e.over = h.left; e.own {
						e.over = context.DeadlineExceeded
					}
					e.matches = e.err != nil && detail&16 != 0
				}
				end(which%len(running), e)
			case what == 6 && p.nextBranch > 0:
				if i := which % p.nextBranch; p.phase == open && !p.states[i].settled {
					h.events = append(h.events, event{expires, i, ending{}})
					p.states[i].late = p.states[i].running > 0
					p.settle(i, context.DeadlineExceeded, 0)
				}
			case what == 7 && which == 0 && len(running) > 0:
				h.events = append(h.events, event{exits, running[0].branch, ending{}})
				if p.exit(running[0].branch) {
					ended[running[0].branch]++
				}
				running = running[1:]
			}
			if got, want := fmt.Sprint(p.phase), h.twin(); got != want {
				t.Fatalf("%+v: phase %s, want %s", h, got, want)
			}
		}
		got := fmt.Sprint(p.phase)
		if p.phase != exited {
			if p.phase == open {
				p.cut = h.left
			}
			missing, err := p.outcome()
			var list []string
			for _, m := range missing {
				list = append(list, m.Branch+m.Err.Error())
			}
			got = fmt.Sprint(p.phase, list, err)
		}
		if h.closed = true; got != h.twin() {
			t.Fatalf("%+v:\n got %s\nwant %s", h, got, h.twin())
		}
		p.phase = idle
		for i := range p.states {
			s := &p.states[i]
			s.late = s.late || !s.settled && s.running > 0
		}
		for len(running) > 0 {
			end(0, ending{})
		}
		for i, s := range p.states {
			if (ended[i] == 1) != s.late || ended[i] > 1 {
				t.Errorf("%+v: branch %d, late: %v, ended %d times", h, i, s.late, ended[i])
			}
		}
	})
}
