package jetstream

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/jobqueue"
)

// answers gives the engine's answers to the goroutines that await them. All answers come by one
// subscription, each to a subject of its own. The client library's requests work alike, but take one
// context, which would have to end with all that ends such a wait: making that context and parsing
// the answer as JSON took a third of the time of Enqueue.
type answers struct {
	inbox string // the beginning of the subjects

	mu      sync.Mutex
	last    uint64 // number of the last subject
	awaited map[uint64]chan *nats.Msg
}

// question is a message to which an answer is awaited.
type question struct {
	number uint64
	answer chan *nats.Msg
}

// subscribe must be called once, before ask.
func (a *answers) subscribe(nc *nats.Conn) error {
	a.inbox, a.awaited = nc.NewInbox()+".", map[uint64]chan *nats.Msg{}
	_, err := nc.Subscribe(a.inbox+"*", a.receive) // ends with the connection
	return err
}

func (a *answers) receive(msg *nats.Msg) {
	number, _ := strconv.ParseUint(strings.TrimPrefix(msg.Subject, a.inbox), 10, 64)
	a.mu.Lock()
	answer := a.awaited[number]
	delete(a.awaited, number)
	a.mu.Unlock()
	if answer != nil { // otherwise nobody waits any more
		answer <- msg
	}
}

func (a *answers) add() question {
	asked := question{answer: make(chan *nats.Msg, 1)}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	asked.number = a.last
	a.awaited[asked.number] = asked.answer
	return asked
}

func (a *answers) remove(asked question) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.awaited, asked.number)
}

// ask sends a message that requests an answer, and waits for the answer until ctx ends, the
// deadline passes, the connection is lost, or the queue is closed.
func (q *queue) ask(ctx context.Context, msg *nats.Msg, deadline time.Time) (*nats.Msg, error) {
	left := time.Until(deadline)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case q.closing.Err() != nil:
		return nil, context.Canceled
	case left <= 0:
		return nil, context.DeadlineExceeded
	}
	held := q.link.current()
	asked := q.answers.add()
	msg.Reply = q.answers.inbox + strconv.FormatUint(asked.number, 10)
	if err := q.nc.PublishMsg(msg); err != nil {
		q.answers.remove(asked)
		return nil, err
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	var err error
	select {
	case answer := <-asked.answer:
		if len(answer.Data) == 0 && answer.Header.Get("Status") == "503" {
			return nil, nats.ErrNoResponders
		}
		return answer, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-held.Done():
		err = fmt.Errorf("%w: %w", jobqueue.ErrUnavailable, context.Cause(held))
	case <-q.closing.Done():
		err = context.Canceled
	case <-timer.C:
		err = context.DeadlineExceeded
	}
	q.answers.remove(asked)
	return nil, err
}

// storedAs returns the number of a stored message from a stream's usual answer, which is
// {"stream":"spillway-jobs","seq":17}. Other answers are for encoding/json, which takes longer.
func storedAs(stream string, answer []byte) (sequence uint64, ok bool) {
	rest, named := strings.CutPrefix(string(answer), `{"stream":"`+stream+`","seq":`)
	digits, whole := strings.CutSuffix(rest, "}")
	sequence, err := strconv.ParseUint(digits, 10, 64)
	return sequence, named && whole && err == nil && sequence > 0 && digits[0] != '0'
}
