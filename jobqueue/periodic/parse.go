package periodic

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// field describes one of the five fields of a cron expression.
type field struct {
	name      string
	low, high int
	names     []string // of low and the values after low
}

const (
	minutes = iota
	hours
	monthDays
	months
	weekDays
)

var fields = [...]field{
	minutes:   {name: "minute", low: 0, high: 59},
	hours:     {name: "hour", low: 0, high: 23},
	monthDays: {name: "day of month", low: 1, high: 31},
	months:    {name: "month", low: 1, high: 12, names: strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")},
	weekDays:  {name: "day of week", low: 0, high: 7, names: strings.Fields("sun mon tue wed thu fri sat")},
}

// short are the expressions with a name.
var short = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *",
}

// Parse reads a schedule: a cron expression of five fields (minute, hour, day of month, month, day of
// week), one of @hourly, @daily, @weekly, @monthly and @yearly, or "@every" with a duration in whole
// seconds. The fields are wall-clock times in loc; nil means UTC.
//
// A field is a list, separated by commas, of *, a number or a range such as 9-17; * and a range may
// have a step, such as */5. Months and days of the week have their first three letters as names, and
// Sunday is 0 and 7. If neither day field begins with *, a day matches one of them, otherwise both.
//
// The durations of @every are counted from the first day of the year 1 in UTC, so that all processes
// have the same instants: "@every 6h" runs at 0, 6, 12 and 18 o'clock UTC.
//
// The error names the field that is wrong. An expression that matches no day, such as February 30, is
// an error.
func Parse(spec string, loc *time.Location) (Schedule, error) {
	s, err := parse(strings.TrimSpace(spec))
	if err != nil {
		return Schedule{}, fmt.Errorf("periodic: schedule %.100q: %w", spec, err)
	}
	s.loc = loc
	if loc == nil {
		s.loc = time.UTC
	}
	return s, nil
}

func parse(spec string) (s Schedule, err error) {
	if text, ok := strings.CutPrefix(spec, "@every "); ok {
		s.every, err = time.ParseDuration(strings.TrimSpace(text))
		if err != nil || s.every < time.Second || s.every%time.Second != 0 {
			return s, errors.New("@every needs a duration in whole seconds, such as 90s or 6h")
		}
		return s, nil
	}
	if strings.HasPrefix(spec, "@") {
		long, ok := short[spec]
		if !ok {
			return s, errors.New("use @hourly, @daily, @weekly, @monthly, @yearly, @every with a duration, or five fields")
		}
		spec = long
	}
	texts := strings.Fields(spec)
	if strings.Contains(spec, "TZ=") {
		return s, errors.New("the time zone is the second argument of Parse")
	}
	if len(texts) != len(fields) {
		return s, fmt.Errorf("%d fields: use five: minute, hour, day of month, month and day of week", len(texts))
	}
	for i, f := range fields {
		if s.sets[i], err = f.set(texts[i]); err != nil {
			return s, fmt.Errorf("%s %.40q: %w", f.name, texts[i], err)
		}
	}
	if s.sets[weekDays].has(7) {
		s.sets[weekDays] |= 1 // Sunday
	}
	s.eitherDay = texts[monthDays][0] != '*' && texts[weekDays][0] != '*'
	// The calendar repeats itself after 400 years.
	from := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	if _, ok := s.first(from, from.AddDate(400, 0, 0)); !ok {
		return s, fmt.Errorf("%s %.40q: no such day in the given months", fields[monthDays].name, texts[monthDays])
	}
	return s, nil
}

// set reads the text of a field.
func (f field) set(text string) (all set, err error) {
	for part := range strings.SplitSeq(text, ",") {
		span, stepText, stepped := strings.Cut(part, "/")
		low, high, isRange := f.low, f.high, true
		if span != "*" {
			var lowText, highText string
			lowText, highText, isRange = strings.Cut(span, "-")
			if low, err = f.value(lowText); err != nil {
				return 0, err
			}
			high = low
			if isRange {
				if high, err = f.value(highText); err != nil {
					return 0, err
				}
			}
		}
		step := 1
		if stepped {
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > f.high-f.low {
				return 0, fmt.Errorf("the step %.20q is not a number from 1 to %d", stepText, f.high-f.low)
			}
		}
		switch {
		case stepped && !isRange:
			return 0, fmt.Errorf("a step needs * or a range, such as %d-%d/%d", low, f.high, step)
		case low > high:
			return 0, fmt.Errorf("the range %d-%d is empty", low, high)
		}
		for v := low; v <= high; v += step {
			all |= 1 << v
		}
	}
	return all, nil
}

// value reads a number or a name.
func (f field) value(text string) (int, error) {
	if i := slices.Index(f.names, strings.ToLower(text)); i >= 0 {
		return f.low + i, nil
	}
	v, err := strconv.ParseUint(text, 10, 8)
	if err != nil || int(v) < f.low || int(v) > f.high {
		return 0, fmt.Errorf("%.20q is not a number from %d to %d", text, f.low, f.high)
	}
	return int(v), nil
}
