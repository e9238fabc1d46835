package memory

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/cachetest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

func open(t *testing.T, ttl time.Duration) *Cache {
	t.Helper()
	c, err := New(ttl)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

func TestCache(t *testing.T) { cachetest.Run(t, open(t, time.Hour)) }

func TestAnswersAreForgottenSoLongAfterTheyWereKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := open(t, time.Minute)
		require.NoError(t, c.Keep(t.Context(), cachetest.Query(1), cachetest.Found(1)))
		for range 59 { // reading does not prolong
			time.Sleep(time.Second)
			if got, _ := c.Clinicians(t.Context(), cachetest.Query(1)); len(got) != 1 {
				t.Fatal("forgotten too soon")
			}
		}
		time.Sleep(2 * time.Second)
		if got, _ := c.Clinicians(t.Context(), cachetest.Query(1)); len(got) != 0 {
			t.Error("kept too long")
		}
		time.Sleep(time.Minute)
		if c.answers.EstimatedSize() > 0 {
			t.Error("an answer that nobody asks for stays in memory")
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	c := open(t, time.Hour)
	long := cachetest.Found(1)
	long[0].Specialty = strings.Repeat("x", maxBytes/100)
	for n := range 300 {
		q := cachetest.Query(1)
		q.Organisation += strings.Repeat("x", n)
		require.NoError(t, c.Keep(t.Context(), q, long))
	}
	c.answers.CleanUp()
	if weight := c.answers.WeightedSize(); weight > maxBytes || weight < maxBytes/2 {
		t.Errorf("%d bytes are kept, of at most %d", weight, maxBytes)
	}
	long[0].Specialty = strings.Repeat("x", 2*maxBytes)
	if n := weight(patientapi.ClinicianQuery{}, long); n != maxBytes {
		t.Errorf("a huge answer weighs %d", n)
	}
}
