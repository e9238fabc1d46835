package debugpage

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// markup is a buffer for HTML. html/template would keep every exported method of the whole program
// in its binary, only for this page.
type markup struct{ bytes.Buffer }

// safe is text that is already markup.
type safe string

// put writes markup with arguments. Each argument replaces a %v and is escaped unless it is safe.
// Attributes are in double quotes.
func (m *markup) put(format string, args ...any) {
	for i, a := range args {
		if _, ok := a.(safe); !ok {
			args[i] = html.EscapeString(printable(fmt.Sprint(a)))
		}
	}
	fmt.Fprintf(m, format, args...)
}

// printable replaces characters that HTML cannot represent.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// nbsp is a nonbreaking space.
const nbsp = "\u00a0"

// number formats n, exactly up to five digits.
func number(n uint64) string {
	if n < 1e5 {
		s := strconv.FormatUint(n, 10)
		if len(s) > 3 {
			s = s[:len(s)-3] + "," + s[len(s)-3:]
		}
		return s
	}
	v, unit := float64(n), 0
	for v >= 999.5 && unit < 6 {
		v, unit = v/1000, unit+1
	}
	return digits(v) + nbsp + []string{"", "k", "M", "G", "T", "P", "E"}[unit]
}

func count(n int) string { return number(uint64(max(n, 0))) }

// digits formats v with about three digits.
func digits(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v >= 1e5:
		return number(uint64(min(v, 1e18)))
	case v >= 99.5:
		return number(uint64(math.Round(v)))
	case v >= 9.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v == 0:
		return "0"
	case v < 0.005:
		return "<" + nbsp + "0.01"
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// rate formats a number per second.
func rate(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return digits(v) + "/s"
}

// percent formats a share of a whole; a dash if there is no whole.
func percent(part, whole float64) string {
	switch v := 100 * part / whole; {
	case !(whole > 0) || math.IsNaN(v):
		return "–"
	case v > 0 && v < 0.1:
		return "<" + nbsp + "0.1" + nbsp + "%"
	case v < 9.95:
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0") + nbsp + "%"
	case v < 100 && v > 99.9:
		return ">" + nbsp + "99.9" + nbsp + "%"
	default:
		return strconv.FormatFloat(v, 'f', 0, 64) + nbsp + "%"
	}
}

// span formats a duration with about three digits, and from two minutes on in two units.
func span(d time.Duration) string {
	switch {
	case d <= 0:
		return "0"
	case d < 999500:
		return digits(float64(d)/1e3) + nbsp + "µs"
	case d < 999500*time.Microsecond:
		return digits(float64(d)/1e6) + nbsp + "ms"
	case d < 2*time.Minute:
		return digits(d.Seconds()) + nbsp + "s"
	case d < 2*time.Hour:
		return units(d.Round(time.Second), time.Minute, "min", time.Second, "s")
	case d < 48*time.Hour:
		return units(d.Round(time.Minute), time.Hour, "h", time.Minute, "min")
	}
	return units(d.Round(time.Hour), 24*time.Hour, "d", time.Hour, "h")
}

func units(d, large time.Duration, l string, small time.Duration, s string) string {
	text := fmt.Sprintf("%d%s%s", d/large, nbsp, l)
	if rest := d % large / small; rest > 0 {
		text += fmt.Sprintf(" %d%s%s", rest, nbsp, s)
	}
	return text
}

// ago formats an age coarsely, so that the text seldom changes.
func ago(d time.Duration) string {
	switch {
	case d < 2*time.Second:
		return "just now"
	case d < 20*time.Second:
		return fmt.Sprintf("%d%ss ago", d/time.Second, nbsp)
	case d < 2*time.Minute:
		return fmt.Sprintf("%d%ss ago", d/(5*time.Second)*5, nbsp)
	}
	return span(d.Truncate(time.Minute)) + " ago"
}

// sentence turns words into a sentence.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(s)
	s = string(unicode.ToUpper(first)) + s[size:]
	if !strings.ContainsRune(".!?", rune(s[len(s)-1])) {
		s += "."
	}
	return s
}
