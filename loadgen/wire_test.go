package loadgen

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// someResult sets every part of a result.
func someResult(t testing.TB) *Result {
	parts := make([]*Result, 2)
	for i := range parts {
		r := &Result{Offered: 4, Aborted: 1, Waited: uint64(i), Elapsed: 3 * time.Second, Partial: true, Classes: []ClassResult{{Name: "a"}, {Name: "b"}}}
		r.Lag.RecordN(1000, 4)
		for class, o := range []Outcome{OK, Timeout} {
			r.Classes[class].Outcomes[o].Latency.Record(int64(class+1) * 1e6)
			r.Classes[class].Outcomes[o].Count = 1
			r.Outcomes[o] = r.Classes[class].Outcomes[o]
		}
		r.Outcomes[OK].Count, r.Classes[1].Outcomes[OK].Count = 2, 1
		r.Classes[1].Outcomes[OK].Latency.Record(5)
		r.Outcomes[OK].Latency = *r.Outcomes[OK].Latency.Clone()
		r.Outcomes[OK].Latency.Record(5)
		r.Series = []Point{{Sent: 4}, {At: time.Second, Outcomes: [outcomes]uint64{2, 0, 0, 1}}}
		r.Causes = []Cause{{Outcome: OK, Status: 200, Count: 2}, {Outcome: Timeout, Text: "none", Local: true, Count: 1}}
		r.phase("connect").Record(7)
		parts[i] = r
	}
	sum, err := Merge(parts...)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestJSONRestoresAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, run := shared(t, 1, Config{Open: Poisson(500, time.Second, 5), Interval: 50 * time.Millisecond})
		for _, r := range []*Result{run, {}, someResult(t)} {
			want := text(t, r)
			var got Result
			if err := json.Unmarshal([]byte(want), &got); err != nil {
				t.Fatal(err)
			}
			if text(t, &got) != want || got.Offered != r.Offered || len(got.Series) != len(r.Series) || got.Goodput() != r.Goodput() {
				t.Errorf("%+v, want %+v", got, r)
			}
		}
	})
}

func TestAResultThatCannotBeIsRefused(t *testing.T) {
	good := text(t, someResult(t))
	for name, change := range map[string][2]string{
		"another version":       {"-result/v1", "-result/v2"},
		"no outcome":            {`"timeout":{`, `"lateness":{`},
		"requests without lags": {`"aborted":2`, `"aborted":3`},
		"all of them waited":    {`"waited":1`, `"waited":9`},
		"more by cause":         {`"status":200,"count":4`, `"status":200,"count":5`},
		"an unknown cause":      {`"outcome":"ok","status"`, `"outcome":"fine","status"`},
		"an unknown phase":      {`"name":"connect"`, `"name":"tea"`},
		"more phases":           {`"took_ns":{"count":2,`, `"took_ns":{"count":9,`},
		"negative time":         {`"elapsed_ns":3`, `"elapsed_ns":-3`},
		"a class too many":      {`{"name":"a"`, `{"name":"c","latency_ns":{"ok":H,"rejected":N,"error":N,"timeout":N}},{"name":"a"`},
		"steps without length":  {`"interval_ns":1000000000`, `"interval_ns":0`},
		"steps beyond all time": {`"interval_ns":1000000000`, `"interval_ns":9000000000000000000`},
		"half a step":           {`[8,0,0,0,0]`, `[8,0]`},
	} {
		none := `{"count":0,"sum":0,"min":0,"max":0,"buckets":[]}`
		with := strings.NewReplacer("H", `{"count":1,"sum":1,"min":1,"max":1,"buckets":[[1,1]]}`, "N", none).Replace(change[1])
		bad := strings.Replace(good, change[0], with, 1)
		r := Result{Why: "kept"}
		if bad == good {
			t.Errorf("%s: no %s in %s", name, change[0], good)
		} else if err := json.Unmarshal([]byte(bad), &r); err == nil || r.Why != "kept" {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
}

func FuzzResult(f *testing.F) {
	for _, r := range []*Result{{}, someResult(f)} {
		b, err := json.Marshal(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r Result
		if json.Unmarshal(data, &r) != nil {
			return
		}
		written := text(t, &r)
		var again Result
		if err := json.Unmarshal([]byte(written), &again); err != nil {
			t.Fatalf("%v of %s", err, written)
		}
		if text(t, &again) != written {
			t.Errorf("%s becomes %s", written, text(t, &again))
		}
		twice, err := Merge(&r, &again)
		if err != nil || twice.Offered != 2*r.Offered {
			t.Errorf("%v, %d requests twice are %d", err, r.Offered, twice.Offered)
		}
	})
}
