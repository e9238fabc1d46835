package specimen

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/load/usage"
)

// earlyReturn is the printed handler: each request is answered in a goroutine, and ServeHTTP
// returns at once, which ends the response.
func earlyReturn(store Store) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		go func() {
			defer func() { _ = recover() }() // net/http may panic in a writer that is used after the end
			patient, err := store.Patient(r.URL.Query().Get("id"))
			_ = json.NewEncoder(w).Encode(Reply{Success: err == nil, Patient: patient})
		}()
	}
}

// held is a store that answers when it is released.
type held chan struct{}

func (h held) Patient(id string) (*Patient, error) { <-h; return Made(id), nil }

func TestTheHandlerThatReturnsBeforeItsGoroutineAnswersNobody(t *testing.T) {
	release, recorded := make(held), httptest.NewRecorder()
	defer close(release)
	earlyReturn(release)(recorded, httptest.NewRequest(http.MethodGet, "/?id=P000001", nil))
	if recorded.Code != http.StatusOK || recorded.Body.Len() > 0 {
		t.Errorf("the client got %d, %q", recorded.Code, recorded.Body)
	}
}

// The printed refusal sets Retry-After after the body, when the headers have been sent.
func TestRetryAfterSetBehindTheBodyReachesNobody(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "overloaded, please retry", http.StatusServiceUnavailable)
		w.Header().Set("Retry-After", "1")
	}))
	defer web.Close()
	resp, err := web.Client().Get(web.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "" {
		t.Errorf("%d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
}

// As printed, the worker gives the reply back, cleared, before its receiver has encoded it.
// Cleared on its next use instead, the reply of one patient becomes that of another.
func TestAReplyThatIsGivenBackBeforeItIsEncodedIsLost(t *testing.T) {
	if usage.Race {
		t.Skip("the reply has two owners by design")
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // one place in the pool of replies
	for _, pattern := range []string{SharedOnPut, SharedOnGet} {
		synctest.Test(t, func(t *testing.T) {
			s, err := New(pattern, &Simulated{}, Config{Workers: 1, Queue: 10, Wait: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			reply, err := s.Look(t.Context(), ID(1))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the worker has given it back
			if lost := reply.Patient == nil; lost != (pattern == SharedOnPut) {
				t.Errorf("%s: the receiver encodes %+v", pattern, reply)
			}
			for n := range 10 {
				if _, err := s.Look(t.Context(), ID(2+n)); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			if another := reply.Patient != nil && reply.Patient.ID != ID(1); another != (pattern == SharedOnGet) {
				t.Errorf("%s: then the receiver encodes %+v", pattern, reply.Patient)
			}
		})
	}
}
