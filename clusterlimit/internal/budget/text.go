package budget

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// format is the first word of a text. The text is a line of the State's numbers and a line for each
// lease; a beat is written as its distance from the epoch. During an update of a service several
// versions share a budget, and each replica writes the whole value: words with a "=" at the end of a
// line, which a newer version has added, stay. A text that replicas of this version must not write has
// another format.
const format = "spillway-budget-1"

var errFormat = errors.New("it is no budget of this format")

// Encode returns the state as text.
func (s State) Encode() []byte {
	text := fmt.Appendf(make([]byte, 0, 64+48*len(s.Leases)), "%s %d", format, s.Epoch)
	text = appendNumbers(text, s.Totals[:], s.Whole[:], []int{s.Members})
	text = append(strconv.AppendUint(append(text, ' '), s.Seq, 10), s.newer...)
	for _, l := range s.Leases {
		text = fmt.Appendf(text, "\n%s %d %d %d", l.ID, l.Token, s.Epoch-l.Beat, (l.TTL+int64(time.Millisecond)-1)/int64(time.Millisecond))
		text = appendNumbers(text, l.Has[:], l.Wants[:])
		if l.Account != (Account{}) {
			text = fmt.Appendf(text, " %d %d %d", l.Members, l.Seq, l.Missed)
		}
		text = append(text, l.newer...)
	}
	return text
}

func appendNumbers(text []byte, lists ...[]int) []byte {
	for _, n := range slices.Concat(lists...) {
		text = strconv.AppendInt(append(text, ' '), int64(n), 10)
	}
	return text
}

// Parse reads the output of Encode, of this version or of a newer one.
func Parse(data []byte) (s State, err error) {
	first := true
	for line := range strings.Lines(string(data)) {
		row := numbers{left: strings.Fields(line)}
		word := row.word()
		if first {
			s.Epoch, s.Totals, s.Whole, s.Members, s.Seq = row.number(mostEpoch), row.amounts(), row.amounts(), row.int(), row.number(mostEpoch)
			s.newer = row.newer()
			row.wrong = row.wrong || word != format
		} else {
			l := Lease{ID: word, Token: row.number(mostEpoch), Beat: s.Epoch - row.number(s.Epoch)}
			l.TTL = int64(row.number(uint64(MostTTL/time.Millisecond))) * int64(time.Millisecond)
			l.Has, l.Wants = row.amounts(), row.amounts()
			if len(row.left) > 0 && !strings.Contains(row.left[0], "=") {
				l.Account = Account{Members: row.int(), Seq: row.number(mostEpoch), Missed: row.int()}
			}
			l.newer = row.newer()
			s.Leases = append(s.Leases, l)
		}
		if row.wrong || len(row.left) > 0 {
			return State{}, errFormat
		}
		first = false
	}
	if first {
		return State{}, errFormat
	}
	if err := s.check(); err != nil {
		return State{}, err
	}
	return s, nil
}

// numbers is the rest of a line. A missing word or a wrong number makes the line wrong.
type numbers struct {
	left  []string
	wrong bool
}

func (r *numbers) word() (word string) {
	if r.wrong = r.wrong || len(r.left) == 0; r.wrong {
		return ""
	}
	word, r.left = r.left[0], r.left[1:]
	return word
}

func (r *numbers) number(most uint64) uint64 {
	n, err := strconv.ParseUint(r.word(), 10, 64)
	r.wrong = r.wrong || err != nil || n > most
	return n
}

// newer takes the words at the end of the line that have a "=".
func (r *numbers) newer() (words string) {
	for !r.wrong && len(r.left) > 0 && strings.Contains(r.left[0], "=") {
		words += " " + r.word()
	}
	return words
}

func (r *numbers) int() int { return int(min(r.number(Most), Most)) }

func (r *numbers) amounts() (a Amounts) {
	for kind := range a {
		a[kind] = r.int()
	}
	return a
}
