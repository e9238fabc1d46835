package sqlite_test

import (
	"context"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/audit/sqlite"
	"github.com/spillway-go/spillway/examples/patientapi/internal/audittest"
)

// What a record costs, and how many of them a commit takes, by how many callers record
// at one time.
func BenchmarkRecord(b *testing.B) {
	for _, callers := range []int{1, 8, 64, 512} {
		b.Run("sqlite/callers="+strconv.Itoa(callers), func(b *testing.B) {
			storage, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "audit.db"))
			if err != nil {
				b.Fatal(err)
			}
			defer storage.Close()
			measure(b, storage, callers)
		})
	}
}

func measure(b *testing.B, storage audit.Storage, callers int) {
	w, err := audit.NewWriter(b.Context(), audit.WriterConfig{Storage: storage})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	calls := make(chan struct{}, b.N)
	for range b.N {
		calls <- struct{}{}
	}
	close(calls)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls {
				if err := w.Record(context.Background(), audittest.Typical); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.StopTimer()
	s := w.Stats()
	b.ReportMetric(float64(s.Recorded)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(s.Recorded)/float64(s.Commits), "records/commit")
	if err := w.Close(); err != nil {
		b.Error(err)
	}
}
