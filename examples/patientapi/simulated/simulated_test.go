package simulated

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/internal/storetest"
)

func newStore(t *testing.T) *Store {
	t.Helper()
	s, err := New(storetest.Patients, storetest.Seed)
	require.NoError(t, err)
	return s
}

func inject(t *testing.T, cfg Config) *Injected {
	t.Helper()
	s, err := Inject(newStore(t), cfg)
	require.NoError(t, err)
	return s
}

func TestStore(t *testing.T) { storetest.Run(t, newStore(t)) }

func TestInjectingNothingChangesNothing(t *testing.T) { storetest.Run(t, inject(t, Config{})) }

func TestBadInjectionSaysWhatToDo(t *testing.T) {
	for want, cfg := range map[string]Config{
		"min-latency":         {MinLatency: -1},
		"above max-latency":   {MinLatency: 2, MaxLatency: 1},
		"share from 0 to 1":   {ErrorRate: 1.01},
		"error-rate is -0.1":  {ErrorRate: -0.1},
		"error-rate is NaN":   {ErrorRate: math.NaN()},
		"error-rate is +Inf:": {ErrorRate: math.Inf(1)},
	} {
		if _, err := Inject(newStore(t), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want something about %q", cfg, err, want)
		}
	}
}

func TestLatencyIsUniformAndErrorsKeepTheirRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inject(t, Config{MinLatency: 50 * time.Millisecond, MaxLatency: 100 * time.Millisecond, ErrorRate: 0.05, Seed: 1})
		const calls = 20_000
		var failed int
		var quarters [4]int
		var p patientapi.Patient
		for range calls {
			start := time.Now()
			err := s.Patient(t.Context(), "P000001", &p)
			took := time.Since(start)
			if took < 50*time.Millisecond || took > 100*time.Millisecond {
				t.Fatalf("a call took %v", took)
			}
			quarters[min(int((took-50*time.Millisecond)/(12500*time.Microsecond)), 3)]++
			if errors.Is(err, patientapi.ErrUnavailable) {
				failed++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		for i, n := range quarters {
			if n < calls/4*95/100 || n > calls/4*105/100 {
				t.Errorf("quarter %d of the range has %d of %d calls", i, n, calls)
			}
		}
		if failed < calls*4/100 || failed > calls*6/100 {
			t.Errorf("%d of %d calls failed, want 5 %%", failed, calls)
		}
		if s.Calls() != calls || s.Failures() != uint64(failed) {
			t.Errorf("counted %d calls and %d failures", s.Calls(), s.Failures())
		}
		if mean := s.MeanLatency(); mean < 74*time.Millisecond || mean > 76*time.Millisecond {
			t.Errorf("mean latency drawn is %v", mean)
		}
	})
}

func TestEveryKindOfCallCanFail(t *testing.T) {
	s := inject(t, Config{ErrorRate: 1})
	page := patientapi.Page{Patients: make([]patientapi.Patient, 1), More: true}
	_, clinicians := s.Clinicians(t.Context(), patientapi.ClinicianQuery{})
	_, observations := s.Observations(t.Context(), "P000001")
	_, count := s.Count(t.Context(), patientapi.PatientSearch{})
	for name, err := range map[string]error{
		"patient":      s.Patient(t.Context(), "P000001", new(patientapi.Patient)),
		"patients":     s.Patients(t.Context(), []string{"P000001"}, new(patientapi.Batch)),
		"search":       s.Search(t.Context(), patientapi.PatientSearch{}, &page),
		"count":        count,
		"observations": observations,
		"clinicians":   clinicians,
	} {
		if !errors.Is(err, patientapi.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(page.Patients) > 0 || page.More {
		t.Error("the page still shows somebody else")
	}
	if s.Calls() != 6 || s.Failures() != 6 {
		t.Errorf("counted %d calls and %d failures", s.Calls(), s.Failures())
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := inject(t, Config{MinLatency: time.Hour, MaxLatency: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		p := patientapi.Patient{ID: "somebody else"}
		err := s.Patient(ctx, "P000001", &p)
		if got := time.Since(start); got != time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waited %v, err %v", got, err)
		}
		if p.ID != "" {
			t.Error("the answer still shows somebody else")
		}
	})
}
