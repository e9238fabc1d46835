package loadgen

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Data holds the values for the placeholders of an HTTP target: rows of named columns. {{.name}}
// stands for the column of the request's row, and {{n}} for the request's number. The zero Data has
// no rows, only {{n}}.
//
// Requests use the rows in turn: request n uses row n, and the first row follows the last.
type Data struct {
	names []string
	rows  [][]string
	drawn bool
	seed  uint64
}

// ReadCSV reads rows whose first line names the columns.
func ReadCSV(r io.Reader) (*Data, error) {
	table := csv.NewReader(withoutMark(r))
	records, err := table.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("loadgen: data: %w", err)
	}
	if len(records) < 2 {
		return nil, errors.New("loadgen: data: want a line of column names and at least one row")
	}
	names := records[0]
	for i, name := range names {
		names[i] = strings.TrimSpace(name)
	}
	return newData(names, records[1:])
}

// ReadJSONLines reads rows that are JSON objects, one a line, with the same names. Strings are used
// without their quotes, other values as written.
func ReadJSONLines(r io.Reader) (*Data, error) {
	var names []string
	var rows [][]string
	lines := bufio.NewScanner(withoutMark(r))
	lines.Buffer(nil, 16<<20)
	for line := 1; lines.Scan(); line++ {
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var object map[string]json.RawMessage
		if err := json.Unmarshal(text, &object); err != nil || len(object) == 0 {
			return nil, fmt.Errorf(`loadgen: data: line %d: want a JSON object such as {"id": "P000001"}`, line)
		}
		if names == nil {
			names = slices.Sorted(maps.Keys(object))
		}
		row := make([]string, len(names))
		for i, name := range names {
			value, ok := object[name]
			if !ok {
				return nil, fmt.Errorf("loadgen: data: line %d has no %q, the first one has", line, name)
			}
			if json.Unmarshal(value, &row[i]) != nil || value[0] != '"' {
				row[i] = string(value)
			}
		}
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("loadgen: data: %w", err)
	}
	if len(rows) == 0 {
		return nil, errors.New("loadgen: data: want at least one row")
	}
	return newData(names, rows)
}

// withoutMark returns r without the byte order mark that some programs write at the beginning of a
// text. A parser would find the mark instead of a quote or a brace.
func withoutMark(r io.Reader) io.Reader {
	const byteOrderMark = "\ufeff"
	text := bufio.NewReader(r)
	if begin, _ := text.Peek(len(byteOrderMark)); string(begin) == byteOrderMark {
		_, _ = text.Discard(len(byteOrderMark))
	}
	return text // the next read returns an error of r again
}

func newData(names []string, rows [][]string) (*Data, error) {
	for i, name := range names {
		if whole := "{{" + name + "}}"; placeholder.FindString(whole) != whole || slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("loadgen: data: column %q: want names of letters, digits, - and _, each once", name)
		}
	}
	return &Data{names: names, rows: rows}, nil
}

// Drawn returns the same rows, drawn at random instead of in turn. The same seed
// gives the same row to the same request.
func (d *Data) Drawn(seed uint64) *Data {
	return &Data{names: d.names, rows: d.rows, drawn: true, seed: seed}
}

// column returns the column of a placeholder. A column named n wins over the number of the request.
func (d *Data) column(name string) (int, error) {
	if i := slices.Index(d.names, name); i >= 0 {
		return i, nil
	}
	if name == "n" {
		return number, nil
	}
	return 0, fmt.Errorf("loadgen: no column %q: want {{n}}%s", name, columnList(d.names))
}

func columnList(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(", {{." + name + "}}")
	}
	return b.String()
}

// row returns the row of request n, or nil.
func (d *Data) row(n uint64) []string {
	if d == nil || len(d.rows) == 0 {
		return nil
	}
	if d.drawn {
		n = scramble(d.seed, n)
	}
	return d.rows[n%uint64(len(d.rows))]
}

// scramble returns a number that looks random and depends on seed and n (splitmix64).
func scramble(seed, n uint64) uint64 {
	x := seed*0xd1342543de82ef95 + (n+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
