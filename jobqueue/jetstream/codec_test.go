package jetstream

import (
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/jobqueue"
)

func FuzzDecode(f *testing.F) {
	f.Add(`{"k":"a","p":"high","h":{"x":"y"},"d":5}`)
	f.Add(`{"k":"","p":"urgent"}`)
	f.Add("null")
	f.Fuzz(func(t *testing.T, text string) {
		job, err := decode(nats.Header{headerJob: {text}}, nil)
		if err != nil {
			return
		}
		msg, err := encode(job)
		if err != nil {
			t.Fatalf("%q was decoded and cannot be encoded: %v", text, err)
		}
		again, err := decode(msg.Header, nil)
		if len(job.Header) == 0 {
			job.Header, again.Header = nil, nil
		}
		if err != nil || !reflect.DeepEqual(job, again) {
			t.Fatalf("%+v became %+v, %v", job, again, err)
		}
	})
}

func FuzzMessageID(f *testing.F) {
	f.Add("a b", "a+b")
	f.Add("a%20b", "a b")
	f.Add("ü", "%C3%BC")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := messageID(a), messageID(b)
		if (a == b) != (x == y) {
			t.Errorf("%q and %q become %q and %q", a, b, x, y)
		}
		if strings.ContainsFunc(x, func(r rune) bool { return r <= ' ' || r >= utf8.RuneSelf }) {
			t.Errorf("%q becomes %q", a, x)
		}
	})
}

func TestAJobWithTooManyHeadersIsRefused(t *testing.T) {
	if _, err := encode(jobqueue.Job{Key: "k", Header: map[string]string{"x": strings.Repeat("v", longestEnvelope)}}); err == nil || !strings.Contains(err.Error(), "headers") {
		t.Error(err)
	}
}

func TestAdviceFollowsTheDrainRate(t *testing.T) {
	for _, c := range []struct {
		first   bool
		removed uint64
		refused int
		past    time.Duration
		want    time.Duration
	}{
		{first: true, want: firstAdvice},
		{removed: 100, refused: 100, past: time.Second, want: time.Second},
		{removed: 1000, refused: 10, past: time.Second, want: leastAdvice},
		{removed: 0, refused: 10, past: 4 * time.Second, want: 8 * time.Second},
		{removed: 0, refused: 10, past: time.Hour, want: mostAdvice},
		{removed: 1, refused: 1e6, past: time.Second, want: mostAdvice},
	} {
		if got := estimate(c.first, c.removed, c.refused, c.past); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
