package agents

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/loadgen"
)

// all are messages of every kind.
func all() []message {
	shot := loadgen.Snapshot{Elapsed: time.Second, Sent: 3}
	shot.Latency.Record(5)
	p := part{1, 2, []byte("text")}
	return []message{
		{Call: &call{"r"}}, {Hello: &hello{"a", "host 1", true}}, {Join: &join{"r", 1, 3, p}}, {Ping: &empty{}}, {Pong: &pong{-5}}, {Start: &start{7}},
		{Beat: &beat{2, 9, &echo{3, 4}}}, {Live: &live{1, shot}}, {Done: &done{1, p}}, {Stop: &empty{}}, {Answer: &answer{"no", 3}},
	}
}

func TestMessagesArriveAsTheyWereSent(t *testing.T) {
	for _, m := range all() {
		got, err := decode(m.encode())
		if err != nil || !bytes.Equal(got.encode(), m.encode()) {
			t.Errorf("%s: %v, %s", m.encode(), err, got.encode())
		}
	}
}

func TestMessagesThatMakeNoSenseAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "{}", `{"v":1}`, `{"v":1,"stop":{},"ping":{}}`, `{"v":1,"stop":{}} `[:15] + "x", `{"v":1,"hold":{}}`, `{"v":2,"stop":{}}`, `{"v":1,"call":{"run":"a.b"}}`, `{"v":1,"call":{"run":""}}`,
		`{"v":1,"hello":{"id":"*","name":"x"}}`, `{"v":1,"hello":{"id":"x","name":""}}`, `{"v":1,"beat":{"index":-1}}`, `{"v":1,"join":{"run":"r","index":3,"of":3,"part":{"number":0,"of":1,"bytes":""}}}`,
		`{"v":1,"done":{"index":0,"part":{"number":1,"of":1,"bytes":""}}}`, `{"v":1,"live":{"index":0,"snapshot":{"Elapsed":-1}}}`, `{"v":1,"stop":{}}{}`,
	} {
		if m, err := decode([]byte(text)); err == nil {
			t.Errorf("%s was read as %s", text, m.encode())
		}
	}
}

func FuzzMessage(f *testing.F) {
	for _, m := range all() {
		f.Add(m.encode())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(data)
		if err != nil {
			return
		}
		again, err := decode(m.encode())
		if err != nil || !bytes.Equal(again.encode(), m.encode()) {
			t.Errorf("%s becomes %v, %s", m.encode(), err, again.encode())
		}
	})
}

func FuzzFigures(f *testing.F) {
	text, err := json.Marshal(figures{Result: &loadgen.Result{}, FirstError: "x"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Fuzz(func(t *testing.T, data []byte) {
		var got figures
		_ = decodeStrictly(data, &got)
	})
}

func TestATextComesTogetherFromItsParts(t *testing.T) {
	for _, size := range []int{0, 1, partSize, partSize + 1, 3*partSize + 7} {
		text := make([]byte, size)
		for i := range text {
			text[i] = byte(rand.Uint32())
		}
		var c collector
		parts := split(text)
		for i, p := range parts {
			for range 2 { // the second time because the answer was lost
				got, complete, err := c.add(p)
				if err != nil || complete != (i == len(parts)-1) || complete && !bytes.Equal(got, text) {
					t.Fatalf("%d bytes, part %d of %d: %v, %v, %d bytes", size, i, len(parts), err, complete, len(got))
				}
			}
		}
	}
}

// Whatever order parts come in, a text is complete only if it is right.
func FuzzParts(f *testing.F) {
	f.Add([]byte{0, 1, 2}, 3)
	f.Add([]byte{0, 2, 1}, 3)
	f.Fuzz(func(t *testing.T, order []byte, of int) {
		if of < 1 || of > 200 {
			return
		}
		var c collector
		next := 0
		for _, number := range order {
			text, complete, err := c.add(part{int(number), of, []byte{number}})
			if int(number) == next && err == nil {
				next++
			}
			if complete && err == nil && (next < of || len(text) != of || !slices.IsSorted(text)) {
				t.Fatalf("%v of %d is complete: %v", order, of, text)
			}
		}
	})
}

func TestTheShortestTripSetsTheClock(t *testing.T) {
	const ahead = 5 * time.Second
	random := rand.New(rand.NewPCG(1, 2))
	var c clock
	now := time.Duration(0)
	for range 100 {
		there, back := time.Duration(random.ExpFloat64()*1e6), time.Duration(random.ExpFloat64()*1e6)
		c.add(now, now+there+back, now+there+ahead)
		if off := c.offset - ahead; off.Abs() > c.uncertainty {
			t.Fatalf("%v off, which is beyond ±%v", off, c.uncertainty)
		}
		now += there + back
	}
	if c.uncertainty > 500*time.Microsecond || c.there(1) != c.offset+1 {
		t.Errorf("±%v after 100 trips", c.uncertainty)
	}
	best := c
	c.add(10, 5, 3) // time does not run backwards
	if c != best {
		t.Errorf("%+v, want %+v", c, best)
	}
}

func TestTheRosterLosesTheSilent(t *testing.T) {
	r := newRoster(3, 1500, 0)
	r.hear(0, 1000)
	r.set(1, delivered)
	if gone := r.losses(1499); gone != nil {
		t.Errorf("lost %v too early", gone)
	}
	if gone := r.losses(1500); !slices.Equal(gone, []int{2}) || r.hear(2, 1501) || r.hear(3, 0) || r.hear(-1, 0) {
		t.Errorf("lost %v", gone)
	}
	if left := r.running(); !slices.Equal(left, []int{0}) {
		t.Errorf("%v still run", left)
	}
}

// In whatever order reports come, also with some left out, the steps say as much in total
// as the reports did, and never go back.
func FuzzTimeline(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0, 1, 2, 3, 4, 5}, uint8(3))
	f.Add([]byte{0, 0, 0, 0, 1, 1, 7, 2}, uint8(3))
	f.Fuzz(func(t *testing.T, order []byte, agents uint8) {
		n := int(agents%8) + 1
		line := newTimeline(n, 10)
		now := make([]loadgen.Snapshot, n)
		ended := make([]bool, n)
		var latencies, seen uint64
		var last loadgen.Snapshot
		look := func() {
			for s, ok := line.next(); ok; s, ok = line.next() {
				if s.Elapsed < last.Elapsed || s.Sent < last.Sent {
					t.Fatalf("after %+v comes %+v", last, s)
				}
				last = s
				seen += s.Latency.Count()
			}
		}
		for _, b := range order {
			i := int(b) % n
			if ended[i] {
				continue
			}
			if b > 250 {
				ended[i] = true
				line.end(i)
				look()
				continue
			}
			s := &now[i]
			s.Elapsed += 10 * time.Duration(1+b>>6) // some beats are missed
			s.Sent += uint64(b)
			shot := *s
			shot.Latency.RecordN(1, uint64(b))
			latencies += uint64(b)
			line.add(i, shot)
			look()
		}
		for i := range now {
			line.end(i)
		}
		look()
		var want uint64
		for _, s := range now {
			want += s.Sent
		}
		if last.Sent != want || seen != latencies {
			t.Errorf("%d sent and %d latencies, want %d and %d", last.Sent, seen, want, latencies)
		}
	})
}
