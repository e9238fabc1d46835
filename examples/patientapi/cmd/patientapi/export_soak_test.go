//go:build soak

package main

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/internal/soak"
)

// A service is killed five times in the middle of a long export, which has everything once
// all the same; nobody asks for it a second time.
func TestSoakFiveKillsDoNotEndAnExport(t *testing.T) {
	const kills, patients = 5, 10_000 // so many that no life is long enough for them
	dir := t.TempDir()
	audit := filepath.Join(dir, "audit.db")
	e := newExporter(t, filepath.Join(dir, "exports"), patients, "--audit-db="+audit, "--error-rate=0.01")
	parts := func(where string) int {
		found, err := filepath.Glob(filepath.Join(e.dir, filepath.Base(where), "part-*"))
		assert.NoError(t, err)
		return len(found)
	}
	where := e.interrupted("part-", e.kill)
	var slowest time.Duration
	for range kills - 1 {
		e.start()
		began, before := time.Now(), parts(where)
		await.True(t, "the export has another part", func() bool { return parts(where) > before })
		slowest = max(slowest, time.Since(began))
		time.Sleep(rand.N(300 * time.Millisecond))
		e.kill()
	}
	if e.has(where, "end") {
		t.Error("it was done before the kills")
	}
	e.start()
	e.whole(e.wait(where), patients)
	e.stop()
	verified(t, audit)
	soak.Within(t, "start after a kill until the export has another part", slowest, 30*time.Second,
		"the queue gives a job to the next process six seconds after it was lost; a part of a thousand patients takes a few")
}

// A service that is told to stop in the middle of an export ends soon.
func TestSoakAnExportDoesNotKeepAServiceFromStoppingSoon(t *testing.T) {
	const patients = 2500
	e := newExporter(t, t.TempDir(), patients, "--audit=off", "--error-rate=0")
	var took time.Duration
	where := e.interrupted("tmp-", func() {
		began := time.Now()
		e.stop()
		took = time.Since(began)
	})
	soak.Within(t, "stop during an export", took, 10*time.Second, "a part that is under way ends at its next question; ten seconds is the longest that a part may take")
	e.start()
	e.whole(e.wait(where), patients)
	e.stop()
}
