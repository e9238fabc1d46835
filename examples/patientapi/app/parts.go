package app

import (
	"context"
	"io"
	"net"
	"slices"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/fhir"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/examples/patientapi/tracing"
)

// parts are what a service is made of. Each needs some of those above it.
type parts struct {
	listener      net.Listener
	adminListener net.Listener // nil without one
	admin         string       // its address; empty without one
	callers       *callers
	base          store
	store         *simulated.Injected // base, with latency and failures
	traces        *tracing.Tracing    // nil if they are off
	questions     patientapi.Store    // store, with spans
	clinicians    *directory.Directory
	runner        *patterns.Runner
	records       *auditing  // nil if audit is off
	exporting     *exporting // nil without exports
	api           *httpapi.API
	fhir          *fhir.API
}

// open opens the parts. After an error, too, close closes those that are open.
func (s *service) open(ctx context.Context, stderr io.Writer) error {
	for _, part := range []func(context.Context, io.Writer) error{
		s.openListeners, // first: an address in use is the likeliest mistake, and the store is slow
		s.openCallers, s.openStore, s.openTraces, s.openClinicians, s.openRunner, s.openAudit, s.openExports, s.openAPIs,
	} {
		if err := part(ctx, stderr); err != nil {
			return err
		}
	}
	if s.adminListener != nil {
		s.onClose(s.serveAdmin(s.adminListener, stderr))
	}
	return nil
}

func (s *service) onClose(f func()) { s.closers = append(s.closers, f) }

// close closes what is open, the last one first.
func (s *service) close() {
	for _, f := range slices.Backward(s.closers) {
		f()
	}
}

func (s *service) openListeners(context.Context, io.Writer) (err error) {
	if s.listener, err = listen("addr", s.cmd.Listen.Addr); err != nil {
		return err
	}
	s.onClose(func() { _ = s.listener.Close() })
	if s.adminListener, err = s.cmd.listenAdmin(); err != nil || s.adminListener == nil {
		return err
	}
	s.onClose(func() { _ = s.adminListener.Close() })
	return nil
}

func (s *service) openCallers(ctx context.Context, stderr io.Writer) (err error) {
	if s.callers, err = s.cmd.openCallers(ctx, s.logger, stderr); err == nil {
		s.onClose(func() { _ = s.callers.Close() })
	}
	return err
}

func (s *service) openStore(ctx context.Context, stderr io.Writer) (err error) {
	if s.base, err = s.cmd.openStore(ctx, stderr); err != nil {
		return err
	}
	s.onClose(func() { _ = s.base.Close() })
	s.store, err = simulated.Inject(s.base, s.cmd.injection())
	return usage(err)
}

func (s *service) openTraces(context.Context, io.Writer) (err error) {
	if s.traces, err = s.cmd.openTraces(s.logger); err != nil {
		return err
	}
	s.onClose(func() { closeTraces(s.traces, s.logger) })
	s.questions = s.traces.Store(s.store)
	return nil
}

func (s *service) openClinicians(ctx context.Context, _ io.Writer) error {
	cache, err := s.cmd.openCache()
	if err != nil {
		return err
	}
	if cache != nil {
		s.onClose(func() { _ = cache.Close() })
	}
	s.cmd.tryCache(ctx, cache, s.logger)
	s.clinicians, err = directory.New(directory.Config{Store: s.questions, Cache: cache, CacheTimeout: s.cmd.Cache.Timeout, Logger: s.logger})
	return err
}

func (s *service) openRunner(context.Context, io.Writer) (err error) {
	s.runner, err = s.cmd.runner(s.logger, signals(s.base)...)
	return err
}

func (s *service) openAudit(ctx context.Context, _ io.Writer) (err error) {
	if s.records, err = s.cmd.openAudit(ctx, s.base, s.logger); err == nil {
		s.onClose(s.records.close)
	}
	return err
}

func (s *service) openAPIs(context.Context, io.Writer) (err error) {
	s.api = httpapi.New(httpapi.Config{
		Runner: s.runner, Patients: s.questions, Clinicians: s.clinicians, Health: s.base, Verifier: s.callers.verifier,
		Timeout: s.cmd.Deadline.Timeout, Deadlines: s.cmd.Deadline.classes(), Logger: s.logger,
		Audit: s.records.log(), AuditClosed: s.cmd.Audit.FailClosed, Unrecorded: s.records.trouble(), Tracer: s.traces.Tracer(),
		Metrics: slices.Concat(s.callers.metrics(), s.records.metrics(), s.exporting.metrics(), storeMetrics(s.base), s.traces.Collectors()),
	})
	s.fhir, err = s.cmd.fhirAPI(s.api.Front(), s.runner, s.questions, s.exporting.bulk())
	return err
}
