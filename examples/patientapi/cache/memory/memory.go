// Package memory caches clinicians in the process. It is bounded in bytes.
package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// maxBytes is about what a Cache may weigh: some 50,000 answers.
const maxBytes = 16 << 20

// Cache is a directory.ClinicianCache in memory. It never fails.
type Cache struct {
	answers *otter.Cache[patientapi.ClinicianQuery, []patientapi.Clinician]
}

// New returns a cache that forgets an answer that long after it was kept. It
// starts a goroutine, which Close ends.
func New(ttl time.Duration) (*Cache, error) {
	if ttl <= 0 {
		return nil, fmt.Errorf("memory: a time to live of %v: want more than 0", ttl)
	}
	answers, err := otter.New(&otter.Options[patientapi.ClinicianQuery, []patientapi.Clinician]{
		MaximumWeight:    maxBytes,
		Weigher:          weight,
		ExpiryCalculator: otter.ExpiryWriting[patientapi.ClinicianQuery, []patientapi.Clinician](ttl),
	})
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	return &Cache{answers}, nil
}

// weight is about how many bytes an entry takes.
func weight(q patientapi.ClinicianQuery, found []patientapi.Clinician) uint32 {
	const entry, clinician = 128, 96 // without the text
	n := entry + len(q.Email) + len(q.Organisation)
	for _, c := range found {
		n += clinician + len(c.ID) + len(c.Name.Given) + len(c.Name.Family) + len(c.Specialty) + len(c.Email) + len(c.Organisation)
	}
	return uint32(min(n, maxBytes))
}

// Clinicians implements directory.ClinicianCache.
func (c *Cache) Clinicians(ctx context.Context, q patientapi.ClinicianQuery) ([]patientapi.Clinician, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	found, _ := c.answers.GetIfPresent(q)
	return slices.Clone(found), nil
}

// Keep implements directory.ClinicianCache.
func (c *Cache) Keep(ctx context.Context, q patientapi.ClinicianQuery, found []patientapi.Clinician) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.answers.Set(q, slices.Clone(found))
	return nil
}

// Close implements io.Closer.
func (c *Cache) Close() error {
	c.answers.InvalidateAll()
	c.answers.StopAllGoroutines()
	return nil
}
