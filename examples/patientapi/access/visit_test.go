package access

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

func visitOf(role Role, a Action) *Visit {
	return &Visit{Principal: Principal{Subject: "somebody", Role: role, Patient: "P000001", Scopes: every}, Resource: Patients, Action: a}
}

func TestTouchDecidesAndRemembers(t *testing.T) {
	v := visitOf(Patient, Read)
	require.NoError(t, v.Begin(""))
	if err := v.Touch("P000001", "P000001"); err != nil || !slices.Equal(v.Patients(), []string{"P000001"}) || v.Denied() {
		t.Errorf("%v, %v", err, v.Patients())
	}
	if err := v.Touch("P000001", "P000002"); !errors.Is(err, ErrDenied) || !v.Denied() {
		t.Errorf("another one: %v", err)
	}
	if err := v.Touch("P000001"); !errors.Is(err, ErrDenied) {
		t.Errorf("after a denial: %v", err)
	}
	if err := v.Touch(); !errors.Is(err, ErrDenied) {
		t.Errorf("nobody, after a denial: %v", err)
	}
	if !slices.Equal(v.Patients(), []string{"P000001", "P000002"}) {
		t.Errorf("%v", v.Patients())
	}
}

// An empty id asks Allowed for anybody, and a handler that forgot to look must not get
// that answer.
func TestTouchOfAnEmptyIDIsDenied(t *testing.T) {
	if err := visitOf(Clinician, Read).Touch(""); !errors.Is(err, ErrDenied) {
		t.Error(err)
	}
}

func TestBeginTouchesNobody(t *testing.T) {
	v := visitOf(Patient, Read)
	if err := v.Begin("P000002"); !errors.Is(err, ErrDenied) || !v.Denied() || len(v.Patients()) != 0 {
		t.Errorf("%v, %v", err, v.Patients())
	}
	if err := v.Touch("P000001"); !errors.Is(err, ErrDenied) {
		t.Errorf("after a denial: %v", err)
	}
}

// Everybody is many: an export kept looking through all whom it had touched before.
func TestAVisitNamesSomeAndCountsTheRest(t *testing.T) {
	v := visitOf(ExportJob, ExportAll)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for n := range 50_000 / 4 {
				if err := v.Touch(fmt.Sprintf("P%06d", 4*n+worker)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	named := v.Patients()
	if len(named) != MaxNamed || v.Unnamed() != 50_000-MaxNamed {
		t.Errorf("%d named, %d not", len(named), v.Unnamed())
	}
	slices.Sort(named)
	if len(slices.Compact(named)) != MaxNamed {
		t.Error("somebody is named twice")
	}
	if err := v.Touch(named[0], named[999]); err != nil || v.Unnamed() != 50_000-MaxNamed {
		t.Errorf("%v, %d", err, v.Unnamed())
	}
}
