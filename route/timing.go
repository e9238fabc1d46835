package route

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// timing is the Server-Timing of one request.
type timing struct {
	of     *timings // nil if not asked for
	last   time.Duration
	wait   time.Duration
	decode time.Duration
	handle time.Duration
}

// timings is what the Server-Timing of one route's requests have in common.
//
// A request that takes some microseconds should not spend one on saying so. Its
// header is one of few then, which are made once and shared: as with
// jsonContent, appending to one copies, and setting replaces it.
type timings struct {
	start time.Time // reading the time since is half of reading the time
	waits bool
	known [few * few]atomic.Pointer[[]string]
}

const few = 16 // microseconds

func (t *timings) begin() timing {
	if t == nil {
		return timing{}
	}
	return timing{of: t, last: time.Since(t.start)}
}

func (t *timing) lap(d *time.Duration) {
	if t.of != nil {
		now := time.Since(t.of.start)
		*d, t.last = now-t.last, now
	}
}

func (t *timing) waited()  { t.lap(&t.wait) }
func (t *timing) decoded() { t.lap(&t.decode) }
func (t *timing) handled() { t.lap(&t.handle) }

// write sets Server-Timing, in milliseconds. It keeps what middleware wrote.
func (t *timing) write(h http.Header) {
	if t.of == nil {
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
	if t.of.waits || uint64(decode) >= few || uint64(handle) >= few {
		return []string{t.text()}
	}
	known := &t.of.known[decode*few+handle]
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
	if t.of.waits {
		b = metric(append(b, ", "...), "wait", t.wait)
	}
	return string(metric(append(b, ", "...), "handle", t.handle))
}

func metric(b []byte, name string, d time.Duration) []byte {
	b = append(append(b, name...), ";dur="...)
	return strconv.AppendFloat(b, float64(d.Microseconds())/1000, 'f', -1, 64)
}
