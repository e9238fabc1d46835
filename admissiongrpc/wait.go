package admissiongrpc

import (
	"cmp"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spillway-go/spillway/limiter"
)

// usualTimeout is the ClientTimeout of short streams. gRPC hears of a client that reads only once the
// client has read a quarter of its window, usually 16 KiB, so that a much shorter time would end slow
// clients too.
const usualTimeout = time.Minute

// clientTimeout returns how long the handler of a stream waits for its client. Not positive means
// without a bound.
func (i *Interceptor) clientTimeout(short bool) time.Duration {
	if short {
		return cmp.Or(i.cfg.ClientTimeout, usualTimeout)
	}
	return i.cfg.ClientTimeout
}

// wait is a handler's wait for its client, in one direction of a stream. A wait pauses the permit of
// the stream, and cuts the stream off after a time.
type wait struct {
	on     atomic.Bool    // who sets on to false ends the wait
	permit limiter.Permit // of a wait before the admission: zero
	timer  *time.Timer    // nil: never used
}

func (w *wait) begin(p limiter.Permit, timeout time.Duration, cut func()) {
	w.permit = p
	if timeout > 0 && w.timer == nil {
		w.timer = time.AfterFunc(timeout, func() {
			if w.on.Load() { // otherwise the wait ended at the same moment
				cut()
			}
		})
	}
	p.Pause()
	w.on.Store(true) // from here on another goroutine may end the wait
	if timeout > 0 {
		w.timer.Reset(timeout)
	}
}

// end does nothing if the wait has ended.
func (w *wait) end() {
	if !w.on.Swap(false) {
		return
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	w.permit.Resume()
}

// send sends, which may wait for the client to read.
func (s *stream) send(m any) error {
	if !s.short && s.timeout <= 0 {
		return s.ServerStream.SendMsg(m)
	}
	s.sent.Store(true)
	if s.receives.on.Load() { // from now on a pause of RecvMsg would hide the work of this goroutine
		s.reader.Store(true)
		s.receives.end()
	}
	s.sends.begin(s.permit, s.timeout, s.cut)
	defer s.sends.end()
	return s.ServerStream.SendMsg(m)
}

// receive waits for a message of the client. Only a short stream pauses then: the client of another
// stream may have nothing to say.
func (s *stream) receive(m any) error {
	if !s.short || s.reader.Load() {
		return s.ServerStream.RecvMsg(m)
	}
	permit, timeout := limiter.Permit{}, s.timeout
	if s.admitted.Load() {
		permit = s.permit
	}
	if s.sent.Load() { // the client may wait for the next message itself
		timeout = 0
	}
	s.receives.begin(permit, timeout, s.cut)
	defer s.receives.end()
	return s.ServerStream.RecvMsg(m)
}

// cut ends a stream whose client keeps the handler waiting. Only gRPC can end the context that SendMsg
// and RecvMsg wait for, and gRPC does so once the status is written. WriteStatus is what the gRPC
// server itself calls when the handler returns, and when sending or receiving fails; the first status is
// the one that counts. A dry run cuts off nobody.
func (s *stream) cut() {
	below, ok := grpc.ServerTransportStreamFromContext(s.call.caller).(interface{ WriteStatus(*status.Status) error })
	if !ok || !s.call.enforced() { // not ok: the transport is not gRPC's own
		return
	}
	st := status.Newf(codes.DeadlineExceeded, "the client kept the stream waiting for %v", s.timeout)
	s.mu.Lock()
	s.cutOff = st.Err()
	s.mu.Unlock()
	_ = below.WriteStatus(st) // an error means that the stream has ended
}
