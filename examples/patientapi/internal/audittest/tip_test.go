package audittest_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/internal/audittest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// What is done to the end of a chain while a service writes is noticed at the next
// record, by a writer that has written it and by one that has not.
func TestAWriterNoticesADamagedEnd(t *testing.T) {
	type records = []audit.Record
	for name, change := range map[string]func(h *audit.Head, r *records){
		"the last altered":  func(_ *audit.Head, r *records) { (*r)[4].Event.Subject = "nobody" },
		"its hash altered":  func(_ *audit.Head, r *records) { (*r)[4].Hash[3]++ },
		"the last removed":  func(_ *audit.Head, r *records) { *r = (*r)[:4] },
		"all removed":       func(_ *audit.Head, r *records) { *r = nil },
		"the head removed":  func(h *audit.Head, _ *records) { *h = audit.Head{} },
		"the head altered":  func(h *audit.Head, _ *records) { h.Sequence = 4 },
		"both removed":      func(h *audit.Head, r *records) { *h, *r = audit.Head{}, nil },
		"an earlier copy":   func(h *audit.Head, r *records) { *h, *r = audittest.Whole(t, chainOf(t, nil, 3), nil).Head, (*r)[:3] },
		"one put behind it": func(_ *audit.Head, r *records) { *r = append(*r, audit.Record{Sequence: 6}) },
		"another chain": func(h *audit.Head, r *records) {
			other := new(audittest.Memory)
			audittest.Record(t, other, nil, slices.Repeat([]audit.Event{audittest.Typical}, 5)...)
			*h, *r = audittest.Whole(t, other, nil).Head, other.Records()
		},
	} {
		m := chainOf(t, nil, 4)
		w, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: m})
		require.NoError(t, err)
		require.NoError(t, w.Record(t.Context(), audittest.Typical))
		m.Change(change)
		before := m.Records()
		for range 2 { // nothing is put behind it later either
			if err := w.Record(t.Context(), audittest.Typical); !errors.Is(err, audit.ErrTip) && !errors.Is(err, audit.ErrHead) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_ = w.Close() // says what is lost
		if after := m.Records(); len(after) != len(before) {
			t.Errorf("%s: %d records, and then %d", name, len(before), len(after))
		}
		if name == "an earlier copy" || name == "both removed" || name == "another chain" || name == "the last altered" {
			continue // a writer that has not written it needs Verify for that
		}
		late, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: m})
		if err == nil {
			err = late.Record(t.Context(), audittest.Typical)
			_ = late.Close()
		}
		if !errors.Is(err, audit.ErrTip) && !errors.Is(err, audit.ErrHead) {
			t.Errorf("%s, by another writer: %v", name, err)
		}
	}
}
