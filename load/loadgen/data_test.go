package loadgen

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// fill fills in text for the requests 0 to 4.
func fill(t *testing.T, text string, data *Data) (filled []string) {
	t.Helper()
	tmpl := must(compile(text, data, nil))(t)
	for n := range uint64(5) {
		filled = append(filled, string(tmpl.append(nil, n, data.row(n))))
	}
	return filled
}

func TestRowsFillPlaceholders(t *testing.T) {
	fromCSV := must(ReadCSV(strings.NewReader("\ufeffid, name\nP1,\"Ada, L\"\nP2,\nP3,x\n")))(t)
	fromJSON := must(ReadJSONLines(strings.NewReader(`{"name":"Ada, L","id":"P1"}` + "\n\n" + `{"id":"P2","name":""}` + "\n" + `{"id":"P3","name":"x","more":1}`)))(t)
	want := []string{"0 P1:Ada, L", "1 P2:", "2 P3:x", "3 P1:Ada, L", "4 P2:"}
	for _, data := range []*Data{fromCSV, fromJSON} {
		if got := fill(t, "{{n}} {{.id}}:{{ name }}", data); !slices.Equal(got, want) || len(data.rows) != 3 {
			t.Errorf("%q, want %q", got, want)
		}
		drawn, again, other := fill(t, "{{.id}}", data.Drawn(1)), fill(t, "{{.id}}", data.Drawn(1)), fill(t, "{{.id}}", data.Drawn(3))
		if !slices.Equal(drawn, again) || slices.Equal(drawn, other) {
			t.Errorf("drawn %v, again %v, with another seed %v", drawn, again, other)
		}
	}
	values := must(ReadJSONLines(strings.NewReader(`{"a": "q\"", "b": 1.50, "c": [1, 2], "d": null, "e": true}`)))(t)
	if got := fill(t, "{{a}} {{b}} {{c}} {{d}} {{e}}", values)[0]; got != `q" 1.50 [1, 2] null true` {
		t.Errorf("%s", got)
	}
	if got := fill(t, "{{n}}{{n}}", &Data{})[4]; got != "44" {
		t.Errorf("%s", got)
	}
	if got := fill(t, "{{n}}", nil)[4]; got != "{{n}}" {
		t.Errorf("without data: %s", got)
	}
}

// Spreadsheets and some editors write a byte order mark. A quoted name after the mark was once an
// error, and so was the first line of JSON.
func TestAByteOrderMarkIsNoData(t *testing.T) {
	for text, read := range map[string]func(io.Reader) (*Data, error){
		"\ufeff\"id\",\"name\"\r\n\"P1\",\"Ada\"\r\n": ReadCSV,
		"\ufeffid,name\nP1,Ada\n":                     ReadCSV,
		"id,name\nP1,Ada\n":                           ReadCSV,
		"\ufeff{\"id\":\"P1\",\"name\":\"Ada\"}\r\n":  ReadJSONLines,
		"\ufeff\r\n{\"id\":\"P1\",\"name\":\"Ada\"}":  ReadJSONLines,
	} {
		for _, src := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			data, err := read(src)
			if err != nil {
				t.Errorf("%q: %v", text, err)
				continue
			}
			if got := fill(t, "{{.id}} {{.name}}", data)[0]; got != "P1 Ada" {
				t.Errorf("%q: %q", text, got)
			}
		}
	}
	offsets, err := ReadTrace(strings.NewReader("\ufeff\"1.5\",\"x\"\n2\n"))
	if err != nil || len(offsets) != 2 {
		t.Errorf("%v, %v", offsets, err)
	}
	broken := errors.New("broken")
	if _, err := ReadCSV(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("%v, want the reader's error", err)
	}
	for _, read := range []func(io.Reader) (*Data, error){ReadCSV, ReadJSONLines} {
		if _, err := read(strings.NewReader("\ufeff")); err == nil || !strings.Contains(err.Error(), "at least one row") {
			t.Errorf("nothing but a mark: %v", err)
		}
	}
}

// A body larger than the sockets' buffers is not written before an answer is read, even if only
// some rows are as long.
func TestBodiesThatRowsMakeLongGoThroughNetHTTP(t *testing.T) {
	data := &Data{names: []string{"short", "long"}, rows: [][]string{{"1", "2"}, {"3", strings.Repeat("x", maxRawBody)}}}
	for body, raw := range map[string]bool{"text": true, "{{.short}} {{n}}": true, "{{.long}}": true, "{{.long}}{{n}}": false} {
		h := newHTTP(t, HTTPConfig{URL: "http://server", Body: []byte(body), Data: data})
		if (h.raw != nil) != raw {
			t.Errorf("%s: over its own connections: %v", body, h.raw != nil)
		}
	}
}

func TestDrawnRowsAreUsedAlike(t *testing.T) {
	data := &Data{names: []string{"i"}, rows: [][]string{{"0"}, {"1"}, {"2"}, {"3"}}}
	counts := map[string]int{}
	for n := range uint64(40_000) {
		counts[data.Drawn(9).row(n)[0]]++
	}
	for i, n := range counts {
		if n < 9_500 || n > 10_500 {
			t.Errorf("row %s was drawn %d times of 40,000", i, n)
		}
	}
}

func TestBadDataSaysWhere(t *testing.T) {
	for text, want := range map[string]string{
		"": "at least one row", "id\n": "at least one row", "a,b\n1\n": "line 2", "a,a\n1,2\n": `column "a"`, "a b\n1\n": `column "a b"`, "a\n\"1\n": "line",
	} {
		if _, err := ReadCSV(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "at least one row", "[1]\n": "line 1", "{}\n": "line 1", "{\"a\":1}\nnull\n": "line 2", "{\"a\":1}\n\n{\"b\":1}": `line 3 has no "a"`, `{"a b":1}`: `column "a b"`, `{"a":`: "line 1",
	} {
		if _, err := ReadJSONLines(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzData(f *testing.F) {
	f.Add("a,b\n1,2\n", "{{.a}}{{n}}", true)
	f.Add(`{"a":"1"}`, "x{{ a }}y", false)
	f.Fuzz(func(t *testing.T, file, text string, isCSV bool) {
		read := ReadJSONLines
		if isCSV {
			read = ReadCSV
		}
		data, err := read(strings.NewReader(file))
		if err != nil {
			return
		}
		tmpl, err := compile(text, data, nil)
		if err != nil {
			return
		}
		for n := range uint64(3) {
			filled := string(tmpl.append(nil, n, data.row(n)))
			if !strings.Contains(text, "{{") && filled != text {
				t.Errorf("%q became %q", text, filled)
			}
		}
		for _, name := range data.names {
			if _, err := compile("{{."+name+"}}", data, nil); err != nil {
				t.Errorf("column %q cannot be used: %v", name, err)
			}
		}
	})
}
