package route

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// Some route layers pool the request's context, or the request itself. The next request gets both
// while a goroutine of the first still reads them, as database/sql does with its rows. Of 20,000
// requests all but one saw another's value, most of them nil. Package route pools nothing that the
// handler gets. The test can miss the bug but has no false positives; -race finds further races.
func TestGoroutineThatOutlivesItsHandlerSeesItsOwnValues(t *testing.T) {
	const requests, lag = 2_000, 64
	type key struct{}
	type in struct {
		ID    string            `path:"id"`
		Token string            `header:"X-Token"`
		Name  string            `json:"name" form:"name" validate:"required"`
		Tags  []string          `json:"tags" form:"tags"`
		Extra map[string]string `json:"extra"`
		Sub   *struct {
			Name string `json:"name"`
		} `json:"sub"`
		Raw []byte `json:"raw"`
	}
	var wrong, looked atomic.Int64
	var late sync.WaitGroup
	gates := make(chan chan struct{}, requests)
	m := NewMux(Config{})
	check(t, m.Add(New("POST", "/{id}", func(ctx context.Context, req in) (*in, error) {
		gate := make(chan struct{})
		gates <- gate
		want := ctx.Value(key{}).(string)
		late.Go(func() {
			<-gate // the handler has returned, and others have run
			ok := ctx.Value(key{}) == want && req.ID == want && req.Token == want && req.Name == want && req.Tags[1] == want
			if req.Sub != nil {
				ok = ok && req.Sub.Name == want && req.Extra["k"] == want && string(req.Raw) == "\x00\x10\x83"
			}
			if !ok {
				wrong.Add(1)
			}
			looked.Add(1)
		})
		return &req, nil
	})))
	var clients sync.WaitGroup
	for c := range 4 {
		clients.Go(func() {
			for i := range requests / 4 {
				id := fmt.Sprintf("%d-%d", c, i)
				media, body := "application/json", fmt.Sprintf(`{"name":%q,"tags":["x",%q],"extra":{"k":%q},"sub":{"name":%q},"raw":"ABCD"}`, id, id, id, id)
				if i%4 == 0 {
					media, body = "application/x-www-form-urlencoded", "name="+id+"&tags=x&tags="+id
				}
				h := newHarness("POST", "/"+id, media, body)
				h.request.Header.Set("X-Token", id)
				h.request = h.request.WithContext(context.WithValue(context.Background(), key{}, id))
				h.run(m)
				if h.status != http.StatusOK {
					t.Errorf("%d for %s", h.status, body)
				}
				if len(gates) > lag {
					close(<-gates)
				}
			}
		})
	}
	clients.Wait()
	close(gates)
	for gate := range gates {
		close(gate)
	}
	late.Wait()
	if wrong.Load() != 0 || looked.Load() != requests {
		t.Errorf("%d of %d goroutines saw what was not theirs", wrong.Load(), looked.Load())
	}
}

// keeper keeps a pointer to itself, which the next request must not change.
type keeper struct {
	Name string `json:"name"`
}

var kept []*keeper

func (k *keeper) Validate() error { kept = append(kept, k); return nil }

func TestRequestWhoseMethodKeepsItIsNotReused(t *testing.T) {
	kept = nil
	s := serving(t, func(f func(context.Context, keeper) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	for i := range 10 {
		if w := do(s, "POST", "/", "application/json", fmt.Sprintf(`{"name":"%d"}`, i)); w.Code != 204 {
			t.Fatal(w.Code)
		}
	}
	for i, k := range kept {
		if k.Name != fmt.Sprint(i) {
			t.Errorf("request %d has become %q", i, k.Name)
		}
	}
}
