package fhir

import (
	"context"
	"errors"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

// brokenLog records nothing.
type brokenLog struct{}

func (brokenLog) Record(context.Context, audit.Event) error { return errors.New("the disk is full") }

// An access that could not be recorded was 503 with the code throttled, as if the client
// had asked too often: it would have come back, and added to the load.
func TestAnAccessThatCannotBeRecordedIsNotThrottled(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Limiter, func(cfg *Config) {
		cfg.Front = front.New(front.Config{Verifier: accesstest.Verifier{}, Audit: brokenLog{}, AuditClosed: true})
	})
	a := get(t, api, "/fhir/Patient/P000001")
	if a.Code != 503 || len(a.Issue) != 1 || a.Issue[0].Code != "no-store" {
		t.Errorf("%d %s", a.Code, a.Body)
	}
}
