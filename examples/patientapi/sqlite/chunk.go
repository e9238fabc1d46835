package sqlite

import (
	"iter"
	"sync"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// chunk is some people whose numbers follow each other.
type chunk struct {
	first        int
	patients     []patientapi.Patient
	observations [][]patientapi.Observation // of each
}

// generate makes everybody, on a goroutine that works while the loop does.
func generate(g patientapi.Generator, patients int) iter.Seq[chunk] {
	return func(yield func(chunk) bool) {
		made, done := make(chan chunk, 1), make(chan struct{})
		var making sync.WaitGroup
		making.Go(func() {
			defer close(made)
			for first := 1; first <= patients; first += rowsAtOnce {
				select {
				case made <- newChunk(g, first, min(rowsAtOnce, patients-first+1)):
				case <-done:
					return
				}
			}
		})
		defer making.Wait()
		defer close(done)
		for c := range made {
			if !yield(c) {
				return
			}
		}
	}
}

func newChunk(g patientapi.Generator, first, size int) chunk {
	c := chunk{first, make([]patientapi.Patient, size), make([][]patientapi.Observation, size)}
	for i := range size {
		g.Patient(first+i, &c.patients[i])
		c.observations[i] = g.Observations(first + i)
	}
	return c
}
