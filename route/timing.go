package route

import (
	"net/http"
	"strconv"
	"time"
)

// timing is the Server-Timing of one request.
type timing struct {
	on     bool
	waits  bool
	last   time.Time
	wait   time.Duration
	decode time.Duration
	handle time.Duration
}

func (c *core) begin() timing {
	if !c.timed {
		return timing{}
	}
	return timing{on: true, waits: c.limiter != nil, last: time.Now()}
}

func (t *timing) lap(d *time.Duration) {
	if t.on {
		*d = time.Since(t.last)
		t.last = t.last.Add(*d)
	}
}

func (t *timing) waited()  { t.lap(&t.wait) }
func (t *timing) decoded() { t.lap(&t.decode) }
func (t *timing) handled() { t.lap(&t.handle) }

// write sets Server-Timing, in milliseconds. It keeps what middleware wrote.
func (t *timing) write(h http.Header) {
	if !t.on {
		return
	}
	var space [96]byte
	b := metric(space[:0], "decode", t.decode)
	if t.waits {
		b = metric(append(b, ", "...), "wait", t.wait)
	}
	b = metric(append(b, ", "...), "handle", t.handle)
	h["Server-Timing"] = append(h["Server-Timing"], string(b))
}

func metric(b []byte, name string, d time.Duration) []byte {
	b = append(append(b, name...), ";dur="...)
	return strconv.AppendFloat(b, float64(d.Microseconds())/1000, 'f', -1, 64)
}
