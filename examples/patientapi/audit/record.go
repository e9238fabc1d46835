package audit

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxPatients is how many patients an Event lists.
const MaxPatients = 100

// maxText is how many bytes of a text are kept. What callers send must not decide how
// much is stored.
const maxText = 256

// Hash ties a record to all before it.
type Hash [32]byte

// String returns the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Record is an Event in its place in the chain.
type Record struct {
	Sequence int64
	Event    Event
	Hash     Hash
}

// Head is where a chain ends. The zero Head is that of a chain without records.
type Head struct {
	Sequence int64
	Hash     Hash
	Seal     Hash // over both, so that a Head cannot be made without the Key
}

// String returns number and hash, as ParseHead reads them.
func (h Head) String() string { return fmt.Sprintf("%d %s", h.Sequence, h.Hash) }

// ParseHead reads what String has written. The seal is not part of it.
func ParseHead(text string) (Head, error) {
	var h Head
	fault := fmt.Errorf("audit: not the head of a chain: want a number and %d hexadecimal digits", 2*len(h.Hash))
	words := strings.Fields(text) // and nothing behind them
	if len(words) != 2 || len(words[1]) != 2*len(h.Hash) {
		return Head{}, fault
	}
	var err error
	if h.Sequence, err = strconv.ParseInt(words[0], 10, 64); err != nil || h.Sequence < 0 {
		return Head{}, fault
	}
	if _, err = hex.Decode(h.Hash[:], []byte(words[1])); err != nil {
		return Head{}, fault
	}
	return h, nil
}

// clean brings e to what every storage returns as it was given.
func (e *Event) clean() {
	e.Time = e.Time.UTC().Truncate(time.Microsecond)
	for _, text := range []*string{&e.RequestID, &e.Subject, &e.Role, &e.Action, &e.Resource, (*string)(&e.Outcome), &e.Route, &e.Source} {
		*text = cleanText(*text)
	}
	if extra := len(e.Patients) - MaxPatients; extra > 0 {
		e.Patients, e.More = e.Patients[:MaxPatients], e.More+int64(extra)
	}
	if slices.ContainsFunc(e.Patients, notID) {
		e.Patients = slices.Clone(e.Patients) // those are the caller's
		for i, id := range e.Patients {
			if notID(id) {
				e.Patients[i] = malformed
			}
		}
	}
}

func cleanText(s string) string {
	if len(s) > maxText {
		s = s[:maxText]
	}
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "?")
}

// malformed stands for what was sent as an id and cannot be one.
const malformed = "(malformed)"

// notID reports whether s has not the form of an id of FHIR.
func notID(s string) bool {
	if s == "" || len(s) > 64 {
		return true
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.':
		default:
			return true
		}
	}
	return false
}
