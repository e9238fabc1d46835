package debugpage

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// maxReaders bounds the streams of one page.
	maxReaders = 16
	// writeWait is how long a reader may take for one update.
	writeWait = 10 * time.Second
)

// serveEvents sends the changed sections, once in an interval, until the request's context ends or
// every limiter is closed and idle. A ticker for each reader, in the reader's own request, costs
// less than a goroutine with an owner: only the first reader in an interval looks at the limiters.
func (p *Page) serveEvents(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.Error(w, "the stream needs GET", http.StatusMethodNotAllowed)
		return
	}
	if !p.join() {
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d readers watch this page, which is as many as may", maxReaders), http.StatusServiceUnavailable)
		return
	}
	defer p.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would buffer updates

	out := http.NewResponseController(w)
	send := func(event string, data []byte) bool {
		_ = out.SetWriteDeadline(time.Now().Add(writeWait)) // beyond the server's; unsupported in tests and wrappers
		_, err := fmt.Fprintf(w, "retry: 2000\nevent: %s\ndata: %s\n\n", event, data)
		return err == nil && out.Flush() == nil
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	var seen uint64
	for now := time.Now(); ; {
		version, changed, live := p.refresh(now, seen)
		if seen = version; len(changed) > 0 && !send("update", update(changed)) {
			return
		}
		if !live {
			send("end", []byte("{}"))
			return
		}
		select {
		case <-r.Context().Done():
			return
		case now = <-tick.C:
		}
	}
}

// update is the data of one event: the markup of each section by its id. It is JSON, so that no
// line break in the markup can end the event.
func update(changed []section) []byte {
	byID := map[string]string{}
	for _, s := range changed {
		byID[s.id] = s.html
	}
	data, err := json.Marshal(byID)
	if err != nil {
		panic(err) // strings always marshal
	}
	return data
}

func (p *Page) join() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.readers >= maxReaders {
		return false
	}
	p.readers++
	return true
}

func (p *Page) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.readers--
}
