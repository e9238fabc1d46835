package jetstream

import (
	"context"
	"testing"

	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/jobqueue"
)

// ofCluster is a stream of a cluster, and starting a consumer of one. A server that has just started
// gives the first answer about the consumer.
type (
	ofCluster struct{ js.Stream }
	starting  struct {
		js.Consumer
		asked int
	}
)

func (ofCluster) CachedInfo() *js.StreamInfo {
	return &js.StreamInfo{Cluster: &js.ClusterInfo{Name: "three"}}
}

func (c *starting) Info(ctx context.Context) (*js.ConsumerInfo, error) {
	if c.asked++; c.asked == 1 {
		return &js.ConsumerInfo{Config: c.CachedInfo().Config}, nil
	}
	info, err := c.Consumer.Info(ctx)
	if err == nil {
		info.Cluster = &js.ClusterInfo{Name: "three", Leader: "one"}
	}
	return info, err
}

// After a node of three was killed, Stats had no job at all for a moment: 123 jobs waited, and a test
// that kills nodes took them for lost.
func TestStatsOfAServerThatStartsAreNotZero(t *testing.T) {
	q := open(t, Config{})
	enqueue(t, q, jobqueue.Job{})
	q.jobs, q.slots = ofCluster{q.jobs}, &starting{Consumer: q.slots}
	for i, c := range q.ready {
		q.ready[i] = &starting{Consumer: c}
	}
	if s := stats(t, q); s.Ready != 1 {
		t.Errorf("of one job that waits: %+v", s.Depth)
	}
}
