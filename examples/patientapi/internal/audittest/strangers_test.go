package audittest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/audittest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

func strangers(t *testing.T) (*audit.Strangers, *audit.Writer, *audittest.Memory) {
	t.Helper()
	m := new(audittest.Memory)
	w, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: m})
	require.NoError(t, err)
	return audit.NewStrangers(w), w, m
}

func stranger(source string) audit.Event {
	return audit.Event{Time: time.Now(), Outcome: audit.Denied, Status: 401, Source: source}
}

func closeAll(t *testing.T, s *audit.Strangers, w *audit.Writer) {
	t.Helper()
	assert.NoError(t, errors.Join(s.Close(), w.Close()))
}

// However many ask without a token, what goes on record in a minute is bounded, and all
// of them are counted.
func TestAFloodOfStrangersIsSummed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w, m := strangers(t)
		const minutes, each = 3, 5000
		for range minutes {
			for n := range each {
				source := "192.0.2.1"
				if n > audit.StrangersEach {
					source = "192.0.2.2"
				}
				assert.NoError(t, s.Record(t.Context(), stranger(source)))
			}
			time.Sleep(audit.StrangersEvery)
			synctest.Wait()
		}
		if got := len(m.Events()); got != minutes*(audit.StrangersEach+1) {
			t.Errorf("%d records", got)
		}
		sums := int64(0)
		for _, e := range m.Events() {
			if sums += e.Count; e.Count > 0 && (e.Count != each-audit.StrangersEach || e.Source != "192.0.2.1" || e.Outcome != audit.Denied) {
				t.Errorf("%+v", e)
			}
		}
		if sums != minutes*(each-audit.StrangersEach) {
			t.Errorf("%d were summed", sums)
		}
		closeAll(t, s, w)
		audittest.Whole(t, m, nil)
	})
}

// What was granted, denied to somebody or shed goes on record each, also in a flood.
func TestOnlyStrangersAreSummed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w, m := strangers(t)
		for range 200 {
			_ = s.Record(t.Context(), stranger(""))
		}
		others := []audit.Event{
			{Outcome: audit.Granted, Status: 200, Subject: "dr.weber"}, {Outcome: audit.Denied, Status: 403, Subject: "dr.weber"},
			{Outcome: audit.Denied, Status: 401, Subject: "dr.weber"}, {Outcome: audit.Shed, Status: 503}, {Outcome: audit.Failed, Status: 500},
		}
		for _, e := range others {
			for range 300 {
				assert.NoError(t, s.Record(t.Context(), e))
			}
		}
		closeAll(t, s, w)
		if got, want := len(m.Events()), audit.StrangersEach+300*len(others)+1; got != want {
			t.Errorf("%d records, want %d", got, want)
		}
	})
}

// A sum that cannot be recorded is part of the next one.
func TestASumOutlivesAStorageThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w, m := strangers(t)
		for range audit.StrangersEach + 7 {
			_ = s.Record(t.Context(), stranger("192.0.2.1"))
		}
		m.Fail(errors.New("away"))
		time.Sleep(audit.StrangersEvery)
		synctest.Wait()
		m.Fail(nil)
		time.Sleep(audit.StrangersEvery)
		synctest.Wait()
		events := m.Events()
		if last := events[len(events)-1]; last.Count != 7 || last.Outcome != audit.Denied {
			t.Errorf("%+v", last)
		}
		closeAll(t, s, w)
	})
}
