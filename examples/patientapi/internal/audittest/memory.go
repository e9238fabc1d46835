// Package audittest has a storage of audit records for tests, and what every storage
// must do.
package audittest

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
)

// Memory is an audit.Storage that can be made to fail. Its zero value is empty.
type Memory struct {
	mu      sync.Mutex
	head    audit.Head
	blocks  []audit.Block
	failing error
	before  func(context.Context) error
}

// Fail makes every Append fail with err; nil ends it.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing = err
}

// Before makes every Append begin with f, and fail as f does. Set it before use.
func (m *Memory) Before(f func(context.Context) error) { m.before = f }

// Append implements audit.Storage.
func (m *Memory) Append(ctx context.Context, extend func(audit.Tip) (audit.Block, audit.Head, error)) error {
	if m.before != nil {
		if err := m.before(ctx); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failing != nil {
		return m.failing
	}
	tip := audit.Tip{Head: m.head}
	if n := len(m.blocks); n > 0 {
		tip.Last = m.blocks[n-1]
	}
	block, head, err := extend(tip)
	if err == nil {
		block.Records = slices.Clone(block.Records)
		m.head, m.blocks = head, append(m.blocks, block)
	}
	return err
}

// Read implements audit.Storage.
func (m *Memory) Read(_ context.Context, look func(audit.Head, iter.Seq2[audit.Block, error]) error) error {
	m.mu.Lock()
	head, blocks := m.head, slices.Clone(m.blocks)
	m.mu.Unlock()
	return look(head, func(yield func(audit.Block, error) bool) {
		for _, b := range blocks {
			if !yield(b, nil) {
				return
			}
		}
	})
}

// Close implements audit.Storage.
func (m *Memory) Close() error { return nil }

// Records returns what is on record.
func (m *Memory) Records() (records []audit.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.blocks {
		some, err := b.Open()
		if err != nil {
			panic(err)
		}
		records = append(records, some...)
	}
	return records
}

// Events returns what is on record, without its place in the chain.
func (m *Memory) Events() []audit.Event {
	records := m.Records()
	events := make([]audit.Event, len(records))
	for i, r := range records {
		events[i] = r.Event
	}
	return events
}

// Change lets f alter what is on record, as an attacker would. Each record is in a block
// of its own then.
func (m *Memory) Change(f func(head *audit.Head, records *[]audit.Record)) {
	records := m.Records()
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.head, &records)
	m.blocks = nil
	for i := range records {
		m.blocks = append(m.blocks, audit.BlockOf(records[i:i+1]))
	}
}

// Replace replaces the text of a block, as an attacker would, and returns the one before.
func (m *Memory) Replace(block int, text []byte) (before []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, m.blocks[block].Records = m.blocks[block].Records, text
	return before
}
