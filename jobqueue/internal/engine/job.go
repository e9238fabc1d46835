package engine

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
)

// LongestKey is the length in bytes of the longest key of a job.
const LongestKey = 512

// CheckJob returns why no engine takes a job, whatever its size, or nil.
func CheckJob(job jobqueue.Job) error {
	switch {
	case len(job.Key) > LongestKey:
		return fmt.Errorf("the key has %d bytes, at most %d are possible", len(job.Key), LongestKey)
	case !utf8.ValidString(job.Key):
		return errors.New("the key is not valid UTF-8")
	case job.Priority < spillway.Low || job.Priority > spillway.Critical:
		return fmt.Errorf("the priority is %d: use spillway.Low to Critical", job.Priority)
	case job.Delay < 0:
		return fmt.Errorf("the delay is %s: it must not be negative", job.Delay)
	}
	for name, value := range job.Header {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return fmt.Errorf("header %.40q is not valid UTF-8", name)
		}
		if strings.HasPrefix(name, "Spillway-") || strings.HasPrefix(name, "Nats-") {
			return fmt.Errorf("header %.40q: names that begin with Spillway- or Nats- are the engine's", name)
		}
	}
	return nil
}
