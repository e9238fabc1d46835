package syntax

import (
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// Matcher returns a function that reports whether a text matches re. Most patterns of fields, such
// as ^[+0-9 ]{5,20}$, are a sequence of character sets, each with a repetition count. They are
// compared directly, as long as the text is ASCII.
func Matcher(re *regexp.Regexp) func(string) bool {
	runs := sequenceOf(re.String())
	if runs == nil {
		return re.MatchString
	}
	return func(s string) bool {
		if ok, sure := runs.match(s); sure {
			return ok
		}
		return re.MatchString(s)
	}
}

// sequence describes a whole text as a sequence of runs.
type sequence []run

type run struct {
	set      [utf8.RuneSelf]bool
	min, max int // max is -1 for any number
}

// match consumes as many characters as possible for each run. It needs no backtracking: a run of
// variable length has no character in common with the first character of what may follow. sure is
// false if s is not ASCII, and ok then has no meaning.
func (r sequence) match(s string) (ok, sure bool) {
	at := 0
	for i := range r {
		n := 0
		for ; at < len(s) && n != r[i].max; n++ {
			c := s[at]
			if c >= utf8.RuneSelf {
				return false, false
			}
			if !r[i].set[c] {
				break
			}
			at++
		}
		if n < r[i].min {
			return false, true
		}
	}
	return at == len(s), true
}

// sequenceOf returns the sequence for a pattern, or nil if the pattern is not a sequence.
func sequenceOf(pattern string) sequence {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || re.Op != syntax.OpConcat {
		return nil
	}
	last := len(re.Sub) - 1
	if re.Sub[0].Op != syntax.OpBeginText || re.Sub[last].Op != syntax.OpEndText {
		return nil
	}
	r := sequence{}
	for _, sub := range re.Sub[1:last] {
		if r = r.add(sub); r == nil {
			return nil
		}
	}
	for i := range r {
		for j := i + 1; j < len(r) && r[i].min != r[i].max; j++ {
			if r[i].overlaps(&r[j]) {
				return nil
			}
			if r[j].min > 0 {
				break
			}
		}
	}
	return r
}

// add appends the runs that re matches, or returns nil if re is not a sequence of runs.
func (r sequence) add(re *syntax.Regexp) sequence {
	low, high := 1, 1
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return nil
		}
		for _, c := range re.Rune {
			if c >= utf8.RuneSelf {
				return nil
			}
			one := run{min: 1, max: 1}
			one.set[c] = true
			r = append(r, one)
		}
		return r
	case syntax.OpRepeat:
		low, high = re.Min, re.Max
	case syntax.OpPlus:
		high = -1
	case syntax.OpStar:
		low, high = 0, -1
	case syntax.OpQuest:
		low = 0
	}
	if re.Op != syntax.OpCharClass {
		if len(re.Sub) != 1 {
			return nil
		}
		one := re.Sub[0]
		if one.Op != syntax.OpCharClass && (one.Op != syntax.OpLiteral || len(one.Rune) != 1) || re.Op == syntax.OpCapture {
			return nil
		}
		before := len(r)
		if r = r.add(one); r != nil {
			r[before].min, r[before].max = low, high
		}
		return r
	}
	class := run{min: 1, max: 1}
	for i := 0; i+1 < len(re.Rune); i += 2 {
		for c := re.Rune[i]; c <= re.Rune[i+1] && c < utf8.RuneSelf; c++ {
			class.set[c] = true
		}
	}
	return append(r, class)
}

func (r *run) overlaps(other *run) bool {
	for c := range r.set {
		if r.set[c] && other.set[c] {
			return true
		}
	}
	return false
}
