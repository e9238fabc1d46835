package loadgen

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Cause is what an outcome came from: the status of an answer, or an error. Errors that differ in
// numbers only are one Cause.
type Cause struct {
	Outcome Outcome
	Status  int    // of the answer; 0: there was no complete answer
	Text    string // of status 429 and 503 the header Spillway-Reason; otherwise the first such error
	Local   bool   // the error is the generator's: its machine ran out of something. See Result.Void
	Count   uint64
}

const (
	mostCauses = 50  // rows of a result; all others are one row for each outcome
	mostText   = 200 // bytes of a Cause's text

	otherCauses = "other answers and errors"
)

// causes counts, for one result or a share of it.
type causes struct {
	rows  map[causeKey]*Cause
	final bool   // for a result: no more than mostCauses rows. A share also has a row for each status, however many
	last  *Cause // the row that the last request was added to
}

// causeKey is what the requests of a row have in common.
type causeKey struct {
	outcome Outcome
	status  int
	kind    string // the text, with # for each number
	local   bool
}

// add counts requests. The text of the first request stays.
func (c *causes) add(x Cause) {
	if l := c.last; l != nil && l.Outcome == x.Outcome && l.Status == x.Status && l.Text == x.Text && l.Local == x.Local {
		l.Count += x.Count
		return
	}
	key := causeKey{x.Outcome, x.Status, withoutNumbers(x.Text), x.Local}
	row := c.rows[key]
	if row == nil && len(c.rows) >= mostCauses && (c.final || x.Text != "") {
		x.Status, x.Text = 0, otherCauses
		key.status, key.kind = 0, otherCauses
		row = c.rows[key]
	}
	if row == nil {
		if c.rows == nil {
			c.rows = map[causeKey]*Cause{}
		}
		row = &Cause{Outcome: x.Outcome, Status: x.Status, Text: x.Text, Local: x.Local}
		c.rows[key] = row
	}
	row.Count += x.Count
	c.last = row
}

// sumCauses adds up rows. The most frequent ones stay rows of their own, in the order of outcomes.
func sumCauses(all []Cause) []Cause {
	byCount := func(a, b Cause) int {
		return cmp.Or(isOther(a)-isOther(b), cmp.Compare(b.Count, a.Count), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Text, b.Text))
	}
	first, sum := causes{}, causes{final: true}
	first.unbounded(all)
	rows := first.list()
	slices.SortFunc(rows, byCount)
	for _, x := range rows {
		sum.add(x)
	}
	rows = sum.list()
	slices.SortFunc(rows, func(a, b Cause) int { return cmp.Or(cmp.Compare(a.Outcome, b.Outcome), byCount(a, b)) })
	return rows
}

// isOther is 1 for a row of all others, and otherwise 0.
func isOther(c Cause) int {
	if c.Text == otherCauses {
		return 1
	}
	return 0
}

// unbounded adds rows, however many there are.
func (c *causes) unbounded(all []Cause) {
	c.rows = make(map[causeKey]*Cause, len(all))
	for _, x := range all {
		key := causeKey{x.Outcome, x.Status, withoutNumbers(x.Text), x.Local}
		if row := c.rows[key]; row != nil {
			row.Count += x.Count
			continue
		}
		c.rows[key] = &x
	}
}

func (c *causes) list() []Cause {
	var rows []Cause
	for _, row := range c.rows {
		rows = append(rows, *row)
	}
	return rows
}

// withoutNumbers returns text with # in place of each run of digits.
func withoutNumbers(text string) string {
	if !strings.ContainsAny(text, "0123456789") {
		return text
	}
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; !isDigit(c) {
			b.WriteByte(c)
		} else if i == 0 || !isDigit(text[i-1]) {
			b.WriteByte('#')
		}
	}
	return b.String()
}

// textOf returns the text of an error without the URL and the addresses of its connection, on one
// line.
func textOf(err error) string {
	if of, ok := errors.AsType[*url.Error](err); ok {
		err = of.Err
	}
	text := err.Error()
	if op, ok := errors.AsType[*net.OpError](err); ok {
		bare := &net.OpError{Op: op.Op, Net: op.Net, Err: op.Err}
		text = strings.Replace(text, op.Error(), bare.Error(), 1)
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > mostText {
		end := mostText
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + "…"
	}
	return text
}
