package admissiongrpc

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/spillway-go/spillway/limiter"
)

// UnaryServerInterceptor admits a call before its handler runs, or refuses it. The
// slot comes back when the handler returns, panics or calls runtime.Goexit; a panic
// goes on. It may wait, as Limiter.Acquire does.
func (i *Interceptor) UnaryServerInterceptor(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if i.exempt(info.FullMethod) {
		return handler(ctx, req)
	}
	c, cancel := i.newCall(ctx, info.FullMethod, true)
	defer cancel()
	permit, err := c.acquire()
	if err != nil {
		return nil, err
	}
	defer permit.Release()
	resp, err := handler(c.handler, req)
	permit.Done(outcome(c.handler, err))
	return resp, Refuse(ctx, err)
}

// StreamServerInterceptor admits a stream when its first message has arrived, or
// refuses it then; see Streams in the package comment. The slot comes back as in
// UnaryServerInterceptor.
func (i *Interceptor) StreamServerInterceptor(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if i.exempt(info.FullMethod) {
		return handler(srv, ss)
	}
	short := i.cfg.Short != nil && i.cfg.Short(info.FullMethod)
	c, cancel := i.newCall(ss.Context(), info.FullMethod, short)
	defer cancel()
	s := &stream{ServerStream: ss, call: c, short: short}
	defer func() {
		permit, _ := s.leave()
		permit.Release()
	}()
	err := handler(srv, s)
	permit, refused := s.leave()
	permit.Done(outcome(c.handler, err))
	if refused != nil { // whatever the handler made of it
		return refused
	}
	return Refuse(ss.Context(), err)
}

// stream is the stream of a handler. One goroutine may send and another receive.
type stream struct {
	grpc.ServerStream
	call  call
	short bool

	asked    sync.Once   // the limiter
	admitted atomic.Bool // set once asked
	long     atomic.Bool

	mu      sync.Mutex
	permit  limiter.Permit
	refused error
	left    bool // the handler has ended
}

func (s *stream) Context() context.Context { return s.call.handler }

// RecvMsg admits the stream once the first message is there, and from the second on
// makes it long before it waits.
func (s *stream) RecvMsg(m any) error {
	if s.admitted.Load() {
		s.lengthen()
		return s.ServerStream.RecvMsg(m)
	}
	err := s.ServerStream.RecvMsg(m)
	if err != nil && err != io.EOF { // EOF: there are no messages, and the call is complete
		return err
	}
	if refused := s.admit(); refused != nil {
		return refused
	}
	return err
}

// SendMsg makes the stream long before it sends, which may wait for the client to
// read. A stream that sends first is admitted then.
func (s *stream) SendMsg(m any) error {
	if !s.admitted.Load() {
		if err := s.admit(); err != nil {
			return err
		}
	}
	s.lengthen()
	return s.ServerStream.SendMsg(m)
}

// errHalf is the answer to a stream whose handler has recovered a panic of its admission.
var errHalf = status.Error(codes.Internal, "admission has panicked")

// admit asks the limiter, once, and returns the answer to a stream that was refused. A
// panic of the limiter's observer, or its law, admits nobody.
func (s *stream) admit() error {
	s.asked.Do(func() {
		permit, err := limiter.Permit{}, errHalf
		defer func() { // also if it panics; until then nobody sees an answer
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
	if s.left { // asked by a goroutine that outlived the handler
		permit.Release()
	}
	s.permit, s.refused = permit, refused
}

// lengthen makes the stream long. The permit is safe to read: admitted was set after
// it.
func (s *stream) lengthen() {
	if !s.short && s.long.CompareAndSwap(false, true) {
		s.permit.Long()
	}
}

// leave returns the permit of a handler that has ended, and the answer if it was
// refused. A goroutine that outlives the handler may still ask.
func (s *stream) leave() (limiter.Permit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = true
	return s.permit, s.refused
}
