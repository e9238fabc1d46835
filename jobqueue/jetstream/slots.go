package jetstream

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// slot is the right to run one job at a time. It is a message of the stream of slots. The holder
// keeps the slot by reporting progress, and gives it back by a nak. When a process dies, the engine
// gives its slots to others.
type slot struct {
	msg   *nats.Msg
	since time.Time
	kept  *keeper
}

// giveBack lets the engine hand the slot to whoever asks. A lost slot may have another holder already:
// the engine takes a hand-back from anybody, and would hand that holder's slot to a third one.
func (s *slot) giveBack() {
	if !s.kept.release(s.msg) {
		handBack(s.msg)
	}
}

// slotHolder has a worker's unused slots. Only the dispatcher uses it.
type slotHolder struct {
	q    *queue
	stop context.Context
	kept *keeper
	pull *pull

	idle    []*slot
	asking  bool // a request for a slot is at the engine
	arrived chan *slot
}

func (h *slotHolder) free() int { return len(h.idle) }

// check drops the idle slots that are lost.
func (h *slotHolder) check() {
	h.idle = slices.DeleteFunc(h.idle, func(s *slot) bool {
		lost := h.kept.lost(s.msg)
		if lost {
			h.kept.drop(s.msg)
		}
		return lost
	})
}

// ask takes at most most slots that are free now. If no slot is free, ask requests the next one,
// which arrives on the channel arrived.
func (h *slotHolder) ask(most int) {
	if h.asking {
		return
	}
	_ = h.pull.now(most, func(msg *nats.Msg) { h.idle = append(h.idle, h.slot(msg)) }) // on error no slot is free
	if len(h.idle) > 0 {
		return
	}
	h.asking = true
	go func() { // answers within sentryWait and a round trip, or when stop ends
		var got *slot
		if err := h.pull.wait(h.stop, func(msg *nats.Msg) { got = h.slot(msg) }); err != nil && got == nil {
			pause(h.stop, retryPause)
		}
		h.arrived <- got
	}()
}

func (h *slotHolder) slot(msg *nats.Msg) *slot {
	h.kept.add(msg)
	return &slot{msg: msg, since: time.Now(), kept: h.kept}
}

// answered takes the answer to a request; nil: no slot was free.
func (h *slotHolder) answered(s *slot) {
	h.asking = false
	if s != nil {
		h.idle = append(h.idle, s)
	}
}

func (h *slotHolder) use() *slot {
	last := len(h.idle) - 1
	s := h.idle[last]
	h.idle = h.idle[:last]
	return s
}

// back takes the slot of an ended job. If the slot was held for longer than slotsFor, back gives it
// to other processes.
func (h *slotHolder) back(s *slot) {
	if time.Since(s.since) > slotsFor {
		s.giveBack()
		return
	}
	h.idle = append(h.idle, s)
}

// keep gives back all but n idle slots.
func (h *slotHolder) keep(n int) {
	for len(h.idle) > n {
		h.use().giveBack()
	}
}

func (h *slotHolder) end() {
	h.q.stragglers.Go(func() {
		if h.asking {
			if s := <-h.arrived; s != nil {
				s.giveBack()
			}
		}
		h.pull.end(h.pull.late)
	})
	h.keep(0)
}

// keeper reports progress on messages that wait in this process, so that the engine does not treat
// them as lost.
type keeper struct {
	connected func() bool
	silence   time.Duration // time without a report after which a message is lost

	mu   sync.Mutex
	msgs map[*nats.Msg]time.Time // time of the latest report
}

func (k *keeper) add(m *nats.Msg) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.msgs == nil {
		k.msgs = map[*nats.Msg]time.Time{}
	}
	if _, known := k.msgs[m]; !known {
		k.msgs[m] = time.Now()
	}
}

// lost reports whether the engine has had no report for too long: it then gives the message to
// another worker.
func (k *keeper) lost(m *nats.Msg) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Since(k.msgs[m]) > k.silence
}

func (k *keeper) drop(m *nats.Msg) { k.release(m) }

// release is drop, and reports whether the message was kept and is lost: then another worker may have
// it, and only that worker may hand it back.
func (k *keeper) release(m *nats.Msg) (lost bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	reported, kept := k.msgs[m]
	delete(k.msgs, m)
	return kept && time.Since(reported) > k.silence
}

// start begins reporting. The returned function stops the reports and waits for their end.
func (k *keeper) start(every time.Duration) (stop func()) {
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				k.report()
			}
		}
	}()
	return func() { close(done); <-over }
}

func (k *keeper) report() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.connected() {
		return
	}
	for m, reported := range k.msgs {
		if time.Since(reported) > k.silence {
			continue // another worker may have the message: do not extend its time
		}
		_ = m.InProgress()
		k.msgs[m] = time.Now()
	}
}
