package outbox

import (
	"context"
	"fmt"
	"testing"

	"github.com/spillway-go/spillway/jobqueue"
)

// BenchmarkRelay moves 1,000 rows to a jetstream queue that fsyncs: a row at a time, or many in one
// commit.
func BenchmarkRelay(b *testing.B) {
	const rows = 1000
	for _, parallel := range []int{1, 8, 32, 100} {
		b.Run(fmt.Sprint("parallel ", parallel), func(b *testing.B) {
			s := onSQLite(b)
			box := open(b, s, inJetStream(b), Config{Parallel: parallel})
			for b.Loop() {
				b.StopTimer()
				if err := inTx(b.Context(), box, make([]jobqueue.Job, rows)...); err != nil {
					b.Fatal(err)
				}
				r := &relay{Box: box, holder: "benchmark"}
				b.StartTimer()
				if err := r.drain(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(rows*b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
