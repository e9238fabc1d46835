package audit

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Block is what one commit put on record. To write it as one is what makes a record
// cheap; that it is JSON lets a database read it without this package.
type Block struct {
	First   int64  // number of the first record
	Records []byte // of consecutive numbers, as the description of the package has them
}

// Tip is where a chain ends.
type Tip struct {
	Head Head
	Last Block // the zero Block if there is none
}

var errAltered = errors.New("they are not as they were written")

// stored is a record as it is read.
type stored struct {
	N         int64    `json:"n"`
	Time      int64    `json:"time"`
	RequestID string   `json:"request_id"`
	Subject   string   `json:"subject"`
	Role      string   `json:"role"`
	Action    string   `json:"action"`
	Resource  string   `json:"resource"`
	Patients  []string `json:"patients"`
	More      int64    `json:"more"`
	Outcome   Outcome  `json:"outcome"`
	Status    int      `json:"status"`
	Route     string   `json:"route"`
	Unread    bool     `json:"unread"`
	Count     int64    `json:"count"`
	Source    string   `json:"source"`
	Hash      string   `json:"hash"`
}

// Open returns the records of a block. It accepts only what was written so, byte for
// byte: what a reader of JSON would skip or take twice could mislead another one.
func (b Block) Open() ([]Record, error) {
	var all []stored
	if err := json.Unmarshal(b.Records, &all); err != nil {
		return nil, fmt.Errorf("they are no records: %w", err)
	}
	records := make([]Record, len(all))
	for i := range all {
		s := &all[i]
		r := &records[i]
		if n, err := hex.Decode(r.Hash[:], []byte(s.Hash[:min(len(s.Hash), 2*len(r.Hash))])); err != nil || n != len(r.Hash) {
			return nil, errAltered
		}
		if len(s.Patients) == 0 {
			s.Patients = nil
		}
		r.Sequence, r.Event = s.N, Event{
			Time: time.UnixMicro(s.Time).UTC(), RequestID: s.RequestID, Subject: s.Subject, Role: s.Role, Action: s.Action, Resource: s.Resource,
			Patients: s.Patients, More: s.More, Outcome: s.Outcome, Status: s.Status, Route: s.Route, Unread: s.Unread, Count: s.Count, Source: s.Source,
		}
	}
	if len(records) == 0 || records[0].Sequence != b.First || !bytes.Equal(BlockOf(records).Records, b.Records) {
		return nil, errAltered
	}
	return records, nil
}

// end returns the last two records of a block, or the only one.
func (b Block) end() ([]Record, error) {
	last := bytes.LastIndexByte(b.Records, '\n') // in JSON a text has none
	if before := bytes.LastIndexByte(b.Records[:max(last, 0)], '\n'); before >= 0 {
		b.Records = append([]byte{'['}, b.Records[before+1:]...)
		var first struct{ N int64 }
		if err := json.NewDecoder(bytes.NewReader(b.Records[1:])).Decode(&first); err != nil {
			return nil, errAltered
		}
		b.First = first.N
	}
	return b.Open()
}

// BlockOf returns the block of those records.
func BlockOf(records []Record) Block {
	var b Block
	for i := range records {
		b.add(records[i].Sequence, &records[i].Event, records[i].Hash)
	}
	return b
}

// add writes a record behind those of b.
func (b *Block) add(sequence int64, e *Event, h Hash) {
	dst := b.Records
	if len(dst) == 0 {
		b.First = sequence
		dst = append(dst, '[')
	} else {
		dst = append(dst[:len(dst)-1], ",\n"...)
	}
	dst = appendNumber(dst, `{"n":`, sequence)
	dst = appendNumber(dst, `,"time":`, e.Time.UnixMicro())
	dst = appendQuoted(dst, `,"request_id":`, e.RequestID)
	dst = appendQuoted(dst, `,"subject":`, e.Subject)
	dst = appendQuoted(dst, `,"role":`, e.Role)
	dst = appendQuoted(dst, `,"action":`, e.Action)
	dst = appendQuoted(dst, `,"resource":`, e.Resource)
	dst = append(dst, `,"patients":[`...)
	for i, id := range e.Patients {
		comma := ","
		dst = appendQuoted(dst, comma[:min(i, 1)], id)
	}
	dst = appendNumber(dst, `],"more":`, e.More)
	dst = appendQuoted(dst, `,"outcome":`, string(e.Outcome))
	dst = appendNumber(dst, `,"status":`, int64(e.Status))
	dst = appendQuoted(dst, `,"route":`, e.Route)
	dst = strconv.AppendBool(append(dst, `,"unread":`...), e.Unread)
	dst = appendNumber(dst, `,"count":`, e.Count)
	if e.Source != "" {
		dst = appendQuoted(dst, `,"source":`, e.Source)
	}
	dst = append(dst, `,"hash":"`...)
	dst = hex.AppendEncode(dst, h[:])
	b.Records = append(dst, `"}]`...)
}

func appendNumber(dst []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(dst, name...), n, 10)
}

// appendQuoted escapes what JSON does not have in a text, and nothing else, as SQLite
// and PostgreSQL do.
func appendQuoted(dst []byte, name, s string) []byte {
	dst = append(append(dst, name...), '"')
	clean := 0 // up to here s is in dst
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(append(dst, s[clean:i]...), '\\')
		clean = i + 1
		if short := shortEscapes[c]; short != 0 {
			dst = append(dst, short)
		} else {
			dst = append(dst, 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, s[clean:]...), '"')
}

const hexDigits = "0123456789abcdef"

var shortEscapes = [...]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}
