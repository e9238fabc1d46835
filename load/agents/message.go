package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spillway-go/spillway/loadgen"
)

// version is of the messages. Both sides must have the same.
const version = 1

// message is everything that is ever sent: a version and one of the others.
type message struct {
	Version int     `json:"v"`
	Call    *call   `json:"call,omitempty"`
	Hello   *hello  `json:"hello,omitempty"`
	Join    *join   `json:"join,omitempty"`
	Ping    *empty  `json:"ping,omitempty"`
	Pong    *pong   `json:"pong,omitempty"`
	Start   *start  `json:"start,omitempty"`
	Beat    *beat   `json:"beat,omitempty"`
	Live    *live   `json:"live,omitempty"`
	Done    *done   `json:"done,omitempty"`
	Stop    *empty  `json:"stop,omitempty"`
	Answer  *answer `json:"answer,omitempty"`
}

type (
	empty struct{}

	// call asks who is there.
	call struct {
		Run string `json:"run"`
	}
	// hello is the answer.
	hello struct {
		ID   string `json:"id"`
		Name string `json:"name"` // for people: a host and a process
		Busy bool   `json:"busy,omitempty"`
	}
	// join gives an agent its share. Its parts are sent one after the other, as requests;
	// the last is answered when the agent has planned the load and reached the target.
	join struct {
		Run   string `json:"run"`
		Index int    `json:"index"`
		Of    int    `json:"of"`
		Part  part   `json:"part"` // of a text that the agent's Plan reads
	}
	// pong is what an agent's clock says, in nanoseconds since any instant.
	pong struct {
		Clock int64 `json:"clock"`
	}
	// start says when to begin, by the clock of the agent that gets it.
	start struct {
		At int64 `json:"at"`
	}
	// beat says that its sender is alive, and what its clock says. An agent's also says
	// which beat of the coordinator it heard last, and when: so each is a round trip.
	beat struct {
		Index int   `json:"index"` // of an agent; 0 from the coordinator
		Clock int64 `json:"clock"`
		Echo  *echo `json:"echo,omitempty"` // nil: none heard, or from the coordinator
	}
	echo struct {
		Clock int64 `json:"clock"` // as it came
		Heard int64 `json:"heard"` // by the agent's clock
	}
	live struct {
		Index    int              `json:"index"`
		Snapshot loadgen.Snapshot `json:"snapshot"`
	}
	// done delivers what an agent has measured, a figures as JSON. Its parts are requests.
	done struct {
		Index int  `json:"index"`
		Part  part `json:"part"`
	}
	// answer is that to a request.
	answer struct {
		Refused string        `json:"refused,omitempty"` // why
		Late    time.Duration `json:"late_ns,omitempty"` // of a start: how late it came
	}
)

// figures is what an agent has measured.
type figures struct {
	Result     *loadgen.Result `json:"result"`
	CPU        time.Duration   `json:"cpu_ns"` // of its process during the run; 0: not known
	PeakRSS    uint64          `json:"peak_rss_bytes"`
	Sent       uint64          `json:"bytes_sent"`
	Received   uint64          `json:"bytes_received"`
	FirstError string          `json:"first_error,omitempty"`
	Ended      string          `json:"ended,omitempty"` // why it stopped before anybody asked it to
}

const (
	mostAgents = 10_000
	mostText   = 200 // bytes, of names and ids
)

var errMessage = errors.New("a message that makes no sense")

func (m message) encode() []byte {
	m.Version = version
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // there is nothing in it that JSON cannot say
	}
	return data
}

func decode(data []byte) (m message, err error) {
	var form struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal(data, &form); err != nil {
		return m, errMessage
	}
	if form.Version != version {
		return m, fmt.Errorf("a message of version %d, this is version %d: use the same version of spillway everywhere", form.Version, version)
	}
	if err := decodeStrictly(data, &m); err != nil {
		return message{}, fmt.Errorf("%w: %w", errMessage, err)
	}
	if !m.valid() {
		return message{}, errMessage
	}
	return m, nil
}

func decodeStrictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errMessage
	}
	return nil
}

// valid reports whether there is one message in it, whose numbers are in their ranges.
func (m *message) valid() bool {
	index := func(i int) bool { return i >= 0 && i < mostAgents }
	word := func(s string) bool { return s != "" && len(s) <= mostText }
	found, good := 0, true
	is := func(there, valid bool) {
		if there {
			found, good = found+1, valid
		}
	}
	is(m.Call != nil, m.Call != nil && token(m.Call.Run))
	is(m.Hello != nil, m.Hello != nil && token(m.Hello.ID) && word(m.Hello.Name))
	is(m.Join != nil, m.Join != nil && token(m.Join.Run) && index(m.Join.Index) && m.Join.Index < m.Join.Of && m.Join.Of <= mostAgents && m.Join.Part.valid())
	is(m.Ping != nil, true)
	is(m.Pong != nil, true)
	is(m.Start != nil, true)
	is(m.Beat != nil, m.Beat != nil && index(m.Beat.Index))
	is(m.Live != nil, m.Live != nil && index(m.Live.Index) && m.Live.Snapshot.Elapsed >= 0)
	is(m.Done != nil, m.Done != nil && index(m.Done.Index) && m.Done.Part.valid())
	is(m.Stop != nil, true)
	is(m.Answer != nil, m.Answer != nil && m.Answer.Late >= 0)
	return found == 1 && good
}

// token reports whether s can be a part of a subject.
func token(s string) bool {
	if s == "" || len(s) > mostText {
		return false
	}
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && c != '-' {
			return false
		}
	}
	return true
}
