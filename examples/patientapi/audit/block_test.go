package audit

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// extended is a block of n records with these texts.
func extended(n int, texts ...string) (b Block, head Head) {
	events := make([]Event, n)
	for i := range events {
		events[i] = Event{RequestID: texts[i%len(texts)], Source: texts[(i+1)%len(texts)], Patients: []string{"P000001"}}
		events[i].clean()
	}
	head = newChain(nil).extend(&b, Head{}, events)
	return b, head
}

// What is written is JSON, and is read as it was.
func FuzzBlocksAreReadAsWritten(f *testing.F) {
	f.Add("", "\x00\x01\b\f\n\r\t\x1f\x7f\"\\/<>&'", "é\u2028\u2029😀\xff")
	f.Add(`"}]`, "],\n[", `\u0041`)
	f.Fuzz(func(t *testing.T, a, b, c string) {
		block, head := extended(4, a, b, c)
		if !json.Valid(block.Records) || bytes.Count(block.Records, []byte("\n")) != 3 {
			t.Fatalf("%s", block.Records)
		}
		records, err := block.Open()
		if err != nil || len(records) != 4 || records[3].Sequence != head.Sequence || records[3].Hash != head.Hash {
			t.Fatalf("%v: %s", err, block.Records)
		}
		again := BlockOf(records)
		if again.First != 1 || !bytes.Equal(again.Records, block.Records) {
			t.Errorf("%s\n%s", block.Records, again.Records)
		}
		last, err := block.end() // the short way
		if err != nil || !reflect.DeepEqual(last, records[2:]) {
			t.Errorf("%v: %+v", err, last)
		}
		if tip := (Tip{head, block}); !newChain(nil).ends(tip) {
			t.Error("it does not end there")
		}
	})
}

// Of JSON that means the same there is one way to write it that is accepted, and behind one
// number.
func FuzzOnlyWhatWasWrittenIsAccepted(f *testing.F) {
	block, _ := extended(2, "a", "b")
	f.Add(block.Records)
	for _, c := range []struct{ old, with string }{
		{`"a"`, `"\u0061"`}, {`"role"`, `"Role"`}, {`"role":""`, `"role":null`}, {`"role":"",`, ``}, {`"role":""`, `"role":"","role":""`},
		{`{`, `{ `}, {"\n", ""}, {"\n", "\n\n"}, {`"count"`, `"found":1,"count"`}, {`"n":1`, `"n":1.0`}, {`"status":0`, `"status":-0`}, {`false`, `0`}, {"}]", "}] "},
	} {
		changed := bytes.Replace(block.Records, []byte(c.old), []byte(c.with), 1)
		if bytes.Equal(changed, block.Records) {
			f.Fatalf("there is no %s", c.old)
		}
		f.Add(changed)
	}
	f.Add([]byte(`[]`))
	f.Add([]byte("[\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		b := Block{First: 1, Records: text}
		_, _ = b.end()
		records, err := b.Open()
		if err != nil {
			return
		}
		if !bytes.Equal(BlockOf(records).Records, text) {
			t.Errorf("%q is accepted", text)
		}
		if _, err := (Block{First: 2, Records: text}).Open(); err == nil {
			t.Errorf("%q is accepted behind another number", text)
		}
	})
}
