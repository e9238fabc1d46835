package route

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// timing is the Server-Timing of one request.
type timing struct {
	shared *timings // nil if the route is untimed
	last   time.Duration
	wait   time.Duration
	decode time.Duration
	handle time.Duration
}

// timings holds the Server-Timing data that all requests of one route share.
//
// Formatting the header takes a microsecond, which is long beside a request of a few microseconds.
// Short requests have few different values, so these are formatted once and shared. As with
// jsonContent, appending to a shared value copies it, and setting replaces it.
type timings struct {
	start  time.Time // time.Since costs half as much as time.Now
	waits  bool
	cached [maxCached * maxCached]atomic.Pointer[[]string]
}

const maxCached = 16 // times of fewer microseconds are short

func (t *timings) begin() timing {
	if t == nil {
		return timing{}
	}
	return timing{shared: t, last: time.Since(t.start)}
}

func (t *timing) lap(d *time.Duration) {
	if t.shared != nil {
		now := time.Since(t.shared.start)
		*d, t.last = now-t.last, now
	}
}

func (t *timing) waited()  { t.lap(&t.wait) }
func (t *timing) decoded() { t.lap(&t.decode) }
func (t *timing) handled() { t.lap(&t.handle) }

// write sets Server-Timing, in milliseconds. It keeps values set by middleware.
func (t *timing) write(h http.Header) {
	if t.shared == nil {
		return
	}
	value := t.value()
	if before := h["Server-Timing"]; before != nil {
		value = append(before[:len(before):len(before)], value...)
	}
	h["Server-Timing"] = value
}

func (t *timing) value() []string {
	decode, handle := t.decode/time.Microsecond, t.handle/time.Microsecond
	if t.shared.waits || uint64(decode) >= maxCached || uint64(handle) >= maxCached {
		return []string{t.text()}
	}
	known := &t.shared.cached[decode*maxCached+handle]
	value := known.Load()
	if value == nil {
		value = &[]string{t.text()}
		known.Store(value)
	}
	return *value
}

func (t *timing) text() string {
	var space [96]byte
	b := metric(space[:0], "decode", t.decode)
	if t.shared.waits {
		b = metric(append(b, ", "...), "wait", t.wait)
	}
	return string(metric(append(b, ", "...), "handle", t.handle))
}

func metric(b []byte, name string, d time.Duration) []byte {
	b = append(append(b, name...), ";dur="...)
	return strconv.AppendFloat(b, float64(d.Microseconds())/1000, 'f', -1, 64)
}
