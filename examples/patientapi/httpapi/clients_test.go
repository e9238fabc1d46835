package httpapi

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
)

// Many clients, each on a connection of its own, check that what they get
// is whom they asked for: the worst that reuse and concurrency can do is to show
// a patient to somebody else.
func TestManyClientsGetWhomTheyAskFor(t *testing.T) { manyClients(t, 100) }

func manyClients(t *testing.T, clients int) {
	t.Helper()
	const each = 3
	wanted := make([]string, people+1)
	for n := 1; n <= people; n++ {
		wanted[n] = want(n)
	}
	for _, pattern := range patterns.Names() {
		t.Run(pattern, func(t *testing.T) {
			base, err := simulated.New(people, 1)
			require.NoError(t, err)
			store, err := simulated.Inject(base, simulated.Config{MaxLatency: 2 * time.Millisecond, ErrorRate: 0.05, Seed: 1})
			require.NoError(t, err)
			s := serveOver(t, pattern, patterns.Config{Workers: 20, QueueSize: clients * 6 / 10}, Config{Patients: store})
			transport := s.Client().Transport.(*http.Transport)
			transport.MaxIdleConnsPerHost = clients

			var ok, refused, failed atomic.Int64
			var wg sync.WaitGroup
			for c := range clients {
				wg.Go(func() {
					for i := range each {
						n := 1 + (c*each+i)%people
						path, body, expected := "/api/v1/patients/"+patientapi.FormatID(n), "", wanted[n]
						method, header := "GET", []string(nil)
						if (c+i)%10 == 0 {
							other := 1 + (n+500)%people
							method, path, header = "POST", "/api/v1/patients:batch", jsonBody
							body = fmt.Sprintf(`{"ids":[%q,%q]}`, patientapi.FormatID(n), patientapi.FormatID(other))
							expected = `{"patients":[` + wanted[n] + `,` + wanted[other] + `],"missing":[]}`
						}
						a, err := s.try(t.Context(), method, path, body, header...)
						switch {
						case err != nil:
							t.Error(err)
							return
						case a.status == 200:
							ok.Add(1)
							if a.body != expected {
								t.Errorf("asked for patient %d\n got %s\nwant %s", n, a.body, expected)
							}
						case a.status == 503:
							refused.Add(1)
						case a.status == 502 && strings.Contains(a.body, "store-unavailable"):
							failed.Add(1)
						default:
							t.Errorf("%d %s", a.status, a.body)
						}
					}
				})
			}
			wg.Wait()
			o := s.Outcomes()
			if o.OK != uint64(ok.Load()) || o.Rejected != uint64(refused.Load()) || o.Error != uint64(failed.Load()) {
				t.Errorf("clients saw %d ok, %d refused, %d failed; the server counted %+v", ok.Load(), refused.Load(), failed.Load(), o)
			}
			// Of what reaches the store one in twenty fails; the adaptive limit lets as little through as
			// the machine can do.
			if ok.Load() == 0 || failed.Load() == 0 && pattern != patterns.Adaptive || (pattern == patterns.Naive && refused.Load() > 0) {
				t.Errorf("%d ok, %d refused, %d failed: nothing was tested", ok.Load(), refused.Load(), failed.Load())
			}
			bounded := pattern != patterns.Naive && pattern != patterns.Adaptive // which finds a limit of its own
			if peak := store.PeakCalls(); bounded && peak > 20 {
				t.Errorf("%d store calls at one time under 20 slots", peak)
			}
		})
	}
}
