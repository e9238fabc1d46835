package admissionhttp_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// A caller beside one that held all slots was answered 429, and the other one's further requests went
// first.
func TestACallerBesideOneThatHoldsAllSlots(t *testing.T) {
	for name, burst := range map[string]int{"one after the other": 1, "a few at once": 10, "many at once": 30} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(4)}))
				var mu sync.Mutex
				var served []string
				takes := map[string]time.Duration{"hog": 10 * time.Second, "honest": 100 * time.Millisecond}
				h := middleware(t, admissionhttp.Config{
					Limiter: lim, FairShares: true, Caller: func(r *http.Request) string { return r.Header.Get("X-Caller") },
				})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					caller := r.Header.Get("X-Caller")
					mu.Lock()
					served = append(served, caller)
					mu.Unlock()
					time.Sleep(takes[caller])
				}))
				statuses := map[string]map[int]int{"hog": {}, "honest": {}}
				send := func(caller string) {
					go func() {
						code := ask(h, t.Context(), "X-Caller", caller).Code
						mu.Lock()
						defer mu.Unlock()
						statuses[caller][code]++
					}()
					synctest.Wait()
				}
				for range 4 {
					send("hog")
					time.Sleep(100 * time.Millisecond)
				}
				for range burst { // all slots are held
					send("honest")
					send("hog")
				}
				time.Sleep(9 * time.Second) // the hog's first request is about to end
				send("hog")
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if n := statuses["honest"]; n[200]+n[503] != burst || n[200] < min(burst, 10) { // 503: no capacity for so many
					t.Errorf("the caller with short requests: %v", n)
				}
				if n := statuses["hog"]; n[429] != burst+1 {
					t.Errorf("the caller that holds all slots: %v", n)
				}
				for i, caller := range served {
					if want := map[bool]string{true: "hog", false: "honest"}[i < 4]; caller != want {
						t.Errorf("number %d is of %s", i, caller)
					}
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				atRest(t, lim, uint64(len(served)))
			})
		})
	}
}

// A request that has become a stream holds no slot, and so no share.
func TestAStreamHoldsNoShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(4)}))
		leave := make(chan struct{})
		h := middleware(t, admissionhttp.Config{
			Limiter: lim, FairShares: true, Caller: func(r *http.Request) string { return r.Header.Get("X-Caller") },
		})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Stream") != "" {
				w.Header().Set("Content-Type", "text/event-stream")
				_ = http.NewResponseController(w).Flush()
			}
			<-leave
		}))
		send := func(headers ...string) <-chan int {
			code := make(chan int, 1)
			go func() { code <- ask(h, t.Context(), headers...).Code }()
			synctest.Wait()
			return code
		}
		for range 50 {
			send("X-Caller", "a", "X-Stream", "1")
		}
		time.Sleep(time.Second)
		for range 4 {
			send("X-Caller", "b")
		}
		first, second := send("X-Caller", "a"), send("X-Caller", "a")
		b := send("X-Caller", "b")
		close(leave)
		if one, two, third := <-first, <-second, <-b; one != 200 || two != 200 || third != 429 {
			t.Errorf("the caller with streams: %d and %d; the caller with all slots: %d", one, two, third)
		}
	})
}

// A caller whose clients are slow was refused for slots that others had long got.
func TestARequestThatWaitsForItsClientHoldsNoShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(4)}))
		leave := make(chan struct{})
		h := middleware(t, admissionhttp.Config{
			Limiter: lim, FairShares: true, ClientTimeout: -1, Caller: func(r *http.Request) string { return r.Header.Get("X-Caller") },
		})(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-leave
		}))
		slow, client := io.Pipe()
		send := func(caller string, body io.Reader) <-chan int {
			code := make(chan int, 1)
			r := httptest.NewRequest(http.MethodPost, "/", body)
			r.Header.Set("X-Caller", caller)
			go func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				code <- w.Code
			}()
			time.Sleep(100 * time.Millisecond)
			return code
		}
		for range 20 {
			send("a", slow)
		}
		if s := lim.Stats(); s.Paused < 16 || s.Rejected > 0 {
			t.Errorf("%d are paused, %d refused", s.Paused, s.Rejected)
		}
		for range 4 {
			send("b", nil)
		}
		first, second := send("a", nil), send("a", nil)
		b := send("b", nil)
		client.Close() // all go on
		close(leave)
		if one, two, third := <-first, <-second, <-b; one != 200 || two != 200 || third != 429 {
			t.Errorf("the caller with slow clients: %d and %d; the caller with all slots: %d", one, two, third)
		}
	})
}
