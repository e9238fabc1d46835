package admissiongrpc

import (
	"cmp"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spillway-go/spillway/limiter"
)

// UnaryServerInterceptor admits a call before its handler runs, or refuses it. The slot is freed
// when the handler returns, panics or calls runtime.Goexit; a panic propagates.
// UnaryServerInterceptor may wait, like Limiter.Acquire.
func (i *Interceptor) UnaryServerInterceptor(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if i.exempt(info.FullMethod) || i.admitted(ctx, info.FullMethod) {
		return handler(ctx, req)
	}
	c, cancel := i.newCall(ctx, info.FullMethod, true)
	defer cancel()
	permit, err := c.acquire()
	if err != nil {
		return nil, err
	}
	inside := c.scope()
	defer func() {
		inside.ended.Store(true)
		permit.Done(outcome(c.handler, errFailed)) // if the handler panics
	}()
	resp, err := handler(inside, req)
	permit.Done(outcome(c.handler, err))
	return resp, Refuse(ctx, err)
}

// StreamServerInterceptor admits a stream when its first message has arrived, or refuses it then;
// see Streams in the package comment. The slot is freed as in UnaryServerInterceptor.
func (i *Interceptor) StreamServerInterceptor(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if i.exempt(info.FullMethod) || i.admitted(ss.Context(), info.FullMethod) {
		return handler(srv, ss)
	}
	short := i.cfg.Short != nil && i.cfg.Short(info.FullMethod)
	c, cancel := i.newCall(ss.Context(), info.FullMethod, short)
	defer cancel()
	s := &stream{ServerStream: ss, call: c, short: short && !c.request.Long}
	s.timeout = i.clientTimeout(s.short)
	inside := c.scope()
	s.call.handler = inside
	defer func() {
		inside.ended.Store(true)
		permit, _ := s.leave()
		permit.Done(outcome(c.handler, errFailed)) // if the handler panics
	}()
	err := handler(srv, s)
	permit, answer := s.leave()
	permit.Done(outcome(c.handler, err))
	if answer != nil { // the answer that the client has got replaces the error of the handler
		return answer
	}
	return Refuse(ss.Context(), err)
}

// stream is the ServerStream of a handler. One goroutine may send and another receive.
type stream struct {
	grpc.ServerStream
	call    call
	short   bool
	timeout time.Duration // of one wait for the client; not positive: none

	asked    sync.Once   // guards the call to the limiter
	admitted atomic.Bool // set after the limiter has admitted the stream
	long     atomic.Bool

	sends, receives wait
	sent            atomic.Bool // the handler has sent a message
	reader          atomic.Bool // one goroutine receives while another one works

	mu      sync.Mutex
	permit  limiter.Permit
	refused error
	cutOff  error // the answer to a client that kept the handler waiting for too long
	left    bool  // the handler has ended
}

func (s *stream) Context() context.Context { return s.call.handler }

// RecvMsg admits the stream once its first message has arrived. From the second message on, RecvMsg
// makes the stream long before it waits.
func (s *stream) RecvMsg(m any) error {
	if s.admitted.Load() {
		s.lengthen()
		return s.receive(m)
	}
	err := s.receive(m)
	if err != nil && err != io.EOF { // EOF: there are no messages, and the call is complete
		return err
	}
	if refused := s.admit(); refused != nil {
		return refused
	}
	return err
}

// SendMsg makes the stream long before it sends, because sending may wait for the client to read.
// If the handler sends first, SendMsg admits the stream.
func (s *stream) SendMsg(m any) error {
	if !s.admitted.Load() {
		if err := s.admit(); err != nil {
			return err
		}
	}
	s.lengthen()
	return s.send(m)
}

// errHalf is the answer to a stream whose handler recovered a panic during admission.
var errHalf = status.Error(codes.Internal, "admission has panicked")

// admit asks the limiter, once, and returns the answer to a refused stream. If the limiter's
// observer or law panics, the stream is not admitted.
func (s *stream) admit() error {
	s.asked.Do(func() {
		permit, err := limiter.Permit{}, errHalf
		defer func() { // also after a panic
			s.answered(permit, err)
			s.admitted.Store(err == nil)
		}()
		permit, err = s.call.acquire()
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused
}

func (s *stream) answered(permit limiter.Permit, refused error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left { // the asking goroutine outlived the handler
		permit.Release()
	}
	s.permit, s.refused = permit, refused
}

// lengthen makes the stream long. Reading permit is safe, because admitted was set after permit.
func (s *stream) lengthen() {
	if !s.short && s.long.CompareAndSwap(false, true) {
		s.permit.Long()
	}
}

// leave returns the permit of a handler that has ended, and the answer if the stream was refused or
// cut off. A goroutine that outlives the handler may still call admit.
func (s *stream) leave() (limiter.Permit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
	return s.permit, cmp.Or(s.refused, s.cutOff)
}
