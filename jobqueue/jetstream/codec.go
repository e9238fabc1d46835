package jetstream

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/internal/engine"
	"github.com/spillway-go/spillway/jobqueue/internal/local"
)

// Headers of a message. The server's own headers are spelled as in its documentation.
const (
	headerJob  = "Spillway-Job"  // an envelope in JSON
	headerDead = "Spillway-Dead" // an epitaph in JSON

	headerMsgID       = nats.MsgIdHdr
	headerBatch       = "Nats-Batch-Id"
	headerBatchSeq    = "Nats-Batch-Sequence"
	headerBatchCommit = "Nats-Batch-Commit"
)

// envelope is a job without its payload. It is a single JSON header, so that keys and values keep
// all their characters.
type envelope struct {
	Key      string            `json:"k"`
	Priority spillway.Priority `json:"p,omitempty"`
	Header   map[string]string `json:"h,omitempty"`
	Delay    time.Duration     `json:"d,omitempty"` // after the server stored it
}

// epitaph is the data that a dead letter adds to its job.
type epitaph struct {
	Reason   string `json:"reason"`
	Attempts int    `json:"attempts"`
	Run      string `json:"run,omitempty"` // names the run that wrote the letter
	Cut      int    `json:"cut,omitempty"` // bytes of the payload that are missing
}

var errNotAJob = errors.New("not a job: it has no valid " + headerJob + " header")

// encode returns the job's message, without a subject. The job must have a key.
func encode(job jobqueue.Job) (*nats.Msg, error) {
	if err := engine.CheckJob(job); err != nil {
		return nil, fmt.Errorf("jetstream: %w", err)
	}
	text, err := json.Marshal(envelope{Key: job.Key, Priority: job.Priority, Header: job.Header, Delay: job.Delay})
	if err != nil {
		return nil, err
	}
	if len(text) > longestEnvelope {
		return nil, fmt.Errorf("%w: its headers take %d bytes, at most %d are possible", jobqueue.ErrTooLarge, len(text), longestEnvelope)
	}
	return &nats.Msg{Data: job.Payload, Header: nats.Header{
		headerJob: {string(text)}, headerMsgID: {messageID(job.Key)},
	}}, nil
}

// decode is the opposite of encode. It accepts messages from any publisher.
func decode(header nats.Header, data []byte) (jobqueue.Job, error) {
	values := header[headerJob]
	if len(values) != 1 {
		return jobqueue.Job{}, errNotAJob
	}
	var e envelope
	if err := json.Unmarshal([]byte(values[0]), &e); err != nil {
		return jobqueue.Job{}, errNotAJob
	}
	job := jobqueue.Job{Key: e.Key, Priority: e.Priority, Payload: data, Header: e.Header, Delay: e.Delay}
	if e.Key == "" || engine.CheckJob(job) != nil {
		return jobqueue.Job{}, errNotAJob
	}
	return job, nil
}

// messageID encodes the key in characters that a header can carry. Different keys give different
// results.
func messageID(key string) string {
	for _, c := range []byte(key) {
		if c <= ' ' || c == '%' || c == '+' || c >= 0x7f {
			return url.QueryEscape(key)
		}
	}
	return key
}

// newKey returns a key that no other job has.
func newKey() string { return rand.Text() }

// size returns the size that the server compares with its maximum message size.
func size(msg *nats.Msg) int {
	n := len("NATS/1.0\r\n\r\n") + len(msg.Data)
	for name, values := range msg.Header {
		for _, value := range values {
			n += len(name) + len(value) + len(": \r\n")
		}
	}
	return n
}

// names are the streams, consumers and subjects of one queue.
type names struct{ jobs, dead, slots, returns, prefix string }

func namesOf(queue string) names {
	stream := local.StreamName(queue)
	return names{
		jobs: stream, dead: stream + "-dead", slots: stream + "-slots", returns: stream + "-returns", prefix: "spillway.jobs." + queue + ".",
	}
}

func (n names) ready(p spillway.Priority) string { return n.prefix + "ready." + p.String() }
func (n names) deadOf(id string) string          { return n.prefix + "dead." + id }
func (n names) returnsOf(id string) string       { return n.prefix + "returns." + id }
func (n names) slot(id string) string            { return n.prefix + "slot." + id }

// priorities in the order in which jobs are handed out.
var priorities = [...]spillway.Priority{spillway.Critical, spillway.High, spillway.Normal, spillway.Low}
