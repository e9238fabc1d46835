package periodic

import (
	"fmt"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

// check ends the test if there is an error.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	check(t, err)
	return loc
}

func parsed(t testing.TB, spec string, loc *time.Location) Schedule {
	t.Helper()
	s, err := Parse(spec, loc)
	check(t, err)
	return s
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	check(t, err)
	return at
}

// following returns the next n instants after one, as text: a date is left out if it is that before.
func following(s Schedule, after time.Time, n int) string {
	var all []string
	for date := ""; n > 0; n-- {
		after = s.Next(after)
		if d := after.Format("Jan2"); d != date {
			all, date = append(all, d), d
		}
		all = append(all, after.Format("15:04Z07:00"))
	}
	return strings.Join(all, " ")
}

func TestInstantsOfASchedule(t *testing.T) {
	for _, c := range []struct{ spec, after, want string }{
		{"* * * * *", "2026-02-28T23:58:30Z", "Feb28 23:59Z Mar1 00:00Z 00:01Z"},
		{"*/25 9-10 * * *", "2026-01-01T09:50:00Z", "Jan1 10:00Z 10:25Z 10:50Z Jan2 09:00Z"},
		{"10-30/10,5 3 * * *", "2026-01-01T00:00:00Z", "Jan1 03:05Z 03:10Z 03:20Z 03:30Z Jan2 03:05Z"},
		{"0 12 * * mon-FRI", "2026-11-26T12:00:00Z", "Nov27 12:00Z Nov30 12:00Z"},
		{"0 12 * * 5-7", "2026-11-26T12:00:00Z", "Nov27 12:00Z Nov28 12:00Z Nov29 12:00Z Dec4 12:00Z"},
		{"0 0 13 * fri", "2026-11-01T00:00:00Z", "Nov6 00:00Z Nov13 00:00Z Nov20 00:00Z Nov27 00:00Z Dec4 00:00Z Dec11 00:00Z Dec13 00:00Z"},
		{"0 0 */2 * fri", "2026-11-01T00:00:00Z", "Nov13 00:00Z Nov27 00:00Z Dec11 00:00Z"},
		{"0 0 29 feb *", "2096-03-01T00:00:00Z", "Feb29 00:00Z"},
		{"@weekly", "2026-11-26T12:00:00Z", "Nov29 00:00Z Dec6 00:00Z"},
		{"@yearly", "2026-11-26T12:00:00Z", "Jan1 00:00Z"},
		{"@hourly", "2026-11-26T12:00:00Z", "Nov26 13:00Z"},
		{" @every 6h ", "2026-11-26T12:00:00Z", "Nov26 18:00Z Nov27 00:00Z"},
		{"@every 168h", "2026-11-26T12:00:00Z", "Nov30 00:00Z Dec7 00:00Z"}, // Mondays
	} {
		s := parsed(t, c.spec, nil)
		if got := following(s, at(t, c.after), strings.Count(c.want, ":")); got != c.want {
			t.Errorf("%s: %s, want %s", c.spec, got, c.want)
		}
	}
	if got := parsed(t, "0 0 29 2 *", nil).Next(at(t, "2096-03-01T00:00:00Z")).Year(); got != 2104 { // 2100 is no leap year
		t.Errorf("the next February 29 is in %d", got)
	}
	if got := parsed(t, "0 0 29 2 */7", nil).Next(at(t, "2092-03-01T00:00:00Z")); got.Format(time.DateOnly) != "2128-02-29" || got.Weekday() != time.Sunday {
		t.Errorf("the next February 29 on a Sunday is %v", got)
	}
}

// Clocks go forward and back in the night; in half an hour, at midnight, over a whole day.
func TestInstantsWhenClocksAreChanged(t *testing.T) {
	for _, c := range []struct{ zone, spec, after, want string }{
		// A time that is left out: at the first instant after the gap, once.
		{"Europe/Berlin", "30 2 * * *", "2026-03-28T02:30:00+01:00", "Mar29 03:00+02:00 Mar30 02:30+02:00"},
		{"Europe/Berlin", "30 2,3 * * *", "2026-03-29T00:00:00+01:00", "Mar29 03:00+02:00 03:30+02:00 Mar30 02:30+02:00"},
		{"Europe/Berlin", "0 */2 * * *", "2026-03-29T00:00:00+01:00", "Mar29 03:00+02:00 04:00+02:00 06:00+02:00"},
		{"Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00:00+10:30", "Oct4 02:30+11:00 Oct5 02:15+11:00"},
		{"America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00:00-03:00", "Nov4 01:00-02:00 Nov5 00:00-02:00"},
		{"America/Sao_Paulo", "30 0 4 11 *", "2018-11-03T12:00:00-03:00", "Nov4 01:00-02:00"},
		{"Africa/Cairo", "@daily", "2026-04-23T12:00:00+02:00", "Apr24 01:00+03:00 Apr25 00:00+03:00"},
		{"Pacific/Apia", "0 9 * * *", "2011-12-29T12:00:00-10:00", "Dec31 00:00+14:00 09:00+14:00"},
		// A time that occurs twice: once, at the first.
		{"Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00+02:00", "Oct25 02:30+02:00 Oct26 02:30+01:00"},
		{"Europe/Berlin", "30 2 * * *", "2026-10-25T02:10:00+01:00", "Oct26 02:30+01:00"},
		{"Europe/Berlin", "*/30 2-3 * * *", "2026-10-25T00:00:00+02:00", "Oct25 02:00+02:00 02:30+02:00 03:00+01:00 03:30+01:00"},
		{"Australia/Lord_Howe", "45 1 * * *", "2026-04-04T12:00:00+11:00", "Apr5 01:45+11:00 Apr6 01:45+10:30"},
		{"America/Sao_Paulo", "30 23 * * *", "2018-02-17T12:00:00-02:00", "Feb17 23:30-02:00 Feb18 23:30-03:00"},
		// Every hour: at equal distances.
		{"Europe/Berlin", "30 * * * *", "2026-03-29T01:00:00+01:00", "Mar29 01:30+01:00 03:30+02:00 04:30+02:00"},
		{"Europe/Berlin", "*/30 * * * *", "2026-10-25T01:45:00+02:00", "Oct25 02:00+02:00 02:30+02:00 02:00+01:00 02:30+01:00 03:00+01:00"},
		{"Europe/Berlin", "*/30 0-23 * * *", "2026-10-25T02:45:00+02:00", "Oct25 02:00+01:00 02:30+01:00"},
		{"Australia/Lord_Howe", "*/15 * * * *", "2026-10-04T01:40:00+10:30", "Oct4 01:45+10:30 02:30+11:00 02:45+11:00"},
		{"Europe/Berlin", "@every 90m", "2026-10-24T23:00:00Z", "Oct25 02:00+02:00 02:30+01:00 04:00+01:00"},
	} {
		got := following(parsed(t, c.spec, zone(t, c.zone)), at(t, c.after), strings.Count(c.want, ":")/2)
		if got != c.want {
			t.Errorf("%s in %s: %s, want %s", c.spec, c.zone, got, c.want)
		}
	}
}

func TestABadScheduleIsAnErrorThatNamesTheField(t *testing.T) {
	for spec, want := range map[string]string{
		"":                       "0 fields: use five",
		"0 * * * * *":            "6 fields: use five",
		"60 * * * *":             `minute "60": "60" is not a number from 0 to 59`,
		"+1 * * * *":             `minute "+1": "+1" is not a number`,
		"1,,2 * * * *":           `minute "1,,2": "" is not a number`,
		"5/15 * * * *":           "minute \"5/15\": a step needs * or a range, such as 5-59/15",
		"*/0 * * * *":            `minute "*/0": the step "0" is not a number from 1 to 59`,
		"* 24 * * *":             `hour "24"`,
		"* 17-9 * * *":           `hour "17-9": the range 17-9 is empty`,
		"* * 0 * *":              `day of month "0"`,
		"* * * 13 *":             `month "13"`,
		"* * * * 8":              `day of week "8"`,
		"0 0 30 2 *":             `day of month "30": no such day`,
		"@dayly":                 "use @hourly, @daily",
		"@every":                 "use @hourly",
		"@every 5":               "@every needs a duration",
		"@every -5m":             "@every needs a duration",
		"@every 1500ms":          "@every needs a duration in whole seconds",
		"CRON_TZ=UTC 0 3 * * *":  "the time zone is the second argument",
		strings.Repeat("9", 999): "1 fields",
	} {
		_, err := Parse(spec, time.UTC)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
}

func TestTheLatestInstant(t *testing.T) {
	s := parsed(t, "* 9-16 * * *", nil)
	for _, c := range []struct{ from, to, want string }{
		{"2026-01-02T00:00:00Z", "2026-01-02T09:00:00Z", "2026-01-02T09:00:00Z"},
		{"2026-01-01T00:00:00Z", "2026-01-02T08:59:59Z", "2026-01-01T16:59:00Z"},
		{"2026-01-01T16:59:00Z", "2026-01-02T08:59:59Z", ""},
		{"2026-01-01T16:58:59Z", "2026-01-02T08:59:59Z", "2026-01-01T16:59:00Z"},
		{"2026-01-01T16:58:59Z", "2026-01-01T16:58:59Z", ""},
	} {
		got := s.latest(at(t, c.from), at(t, c.to))
		if c.want == "" && !got.IsZero() || c.want != "" && !got.Equal(at(t, c.want)) {
			t.Errorf("from %s to %s: %v, want %s", c.from, c.to, got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, spec := range []string{"*/5 9-17 * * mon-fri", "0 0 1,15 * */2", "@every 90s", "@daily", "59 23 31 dec 7", "0 0 29 2 */7"} {
		f.Add(spec, int64(1_700_000_000))
	}
	f.Fuzz(func(t *testing.T, spec string, unix int64) {
		s, err := Parse(spec, nil)
		if err != nil {
			return
		}
		after := time.Unix(unix%(1<<36), 0) // the next two thousand years
		if next := s.Next(after); !next.After(after) {
			t.Errorf("%v after %v", next, after)
		}
	})
}

// model is a schedule for the slow way: what has to match, field by field.
type model struct {
	spec      string
	sets      [5]map[int]bool
	eitherDay bool
}

// modelOf makes a schedule of five numbers.
func modelOf(choices [5]uint32) (m model) {
	var texts []string
	for i, limits := range [5][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}} {
		m.sets[i] = map[int]bool{}
		c, size := int(choices[i]>>2), limits[1]-limits[0]+1
		low, high, step := limits[0], limits[1], 1
		text := "*"
		switch choices[i] & 3 {
		case 1: // a number, and a second one
			low = limits[0] + c%size
			other := limits[0] + c/size%size
			high, text = low, fmt.Sprintf("%d,%d", low, other)
			m.sets[i][other] = true
		case 2: // a range
			low = limits[0] + c%size
			high = low + c/size%(limits[1]-low+1)
			text = fmt.Sprintf("%d-%d", low, high)
		case 3:
			step = 1 + c%(size-1)
			text = fmt.Sprintf("*/%d", step)
		}
		for v := low; v <= high; v += step {
			m.sets[i][v] = true
		}
		texts = append(texts, text)
	}
	m.eitherDay = choices[2]&3%3 != 0 && choices[4]&3%3 != 0
	m.spec = strings.Join(texts, " ")
	return m
}

func (m model) matches(wall time.Time) bool {
	day, week := m.sets[2][wall.Day()], m.sets[4][int(wall.Weekday())]
	if m.eitherDay && !day && !week || !m.eitherDay && !(day && week) {
		return false
	}
	return m.sets[0][wall.Minute()] && m.sets[1][wall.Hour()] && m.sets[3][int(wall.Month())]
}

// next tries each minute after one, up to a last. It keeps the latest time that the clock on the wall
// has shown: a schedule without every hour is due when the clock reaches a time for the first time, or
// jumps over it.
func (m model) next(after, last time.Time, loc *time.Location) (time.Time, bool) {
	wall := func(u time.Time) time.Time {
		l := u.In(loc)
		return time.Date(l.Year(), l.Month(), l.Day(), l.Hour(), l.Minute(), 0, 0, time.UTC)
	}
	u := after.UTC().Truncate(time.Minute).Add(-72 * time.Hour)
	shown := wall(u)
	for ; !u.After(last); u = u.Add(time.Minute) {
		w, due := wall(u), false
		if len(m.sets[1]) == 24 {
			due = m.matches(w)
		} else {
			for s := shown.Add(time.Minute); !s.After(w); s = s.Add(time.Minute) {
				due = due || m.matches(s)
			}
		}
		if due && u.After(after) {
			return u, true
		}
		if w.After(shown) {
			shown = w
		}
	}
	return time.Time{}, false
}

// zones have changes of an hour, two hours, 30 and 15 minutes and a day, at midnight and in Ramadan.
var zones = []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Cairo", "UTC",
	"Pacific/Apia", "Antarctica/Troll", "Africa/Casablanca", "Asia/Kathmandu", "America/Caracas", "Europe/Dublin", "Asia/Gaza", "America/Nuuk"}

func FuzzNextAgreesWithTryingEachMinute(f *testing.F) {
	for i := range uint8(len(zones)) {
		hour := uint32(i) % 4
		f.Add(i, uint32(1_300_000_000), -int32(hour*3600), uint32(1+4*30), 1+4*hour, uint32(0), uint32(0), uint32(0))
		f.Add(i, uint32(1_540_000_000), int32(-7200), uint32(3+4*19), uint32(0), uint32(0), uint32(0), 4*hour)
		f.Add(i, uint32(1_740_000_000), int32(-90_000), uint32(3+4*19), 2+4*hour, uint32(2), 4*hour+1, uint32(1))
	}
	f.Fuzz(func(t *testing.T, inZone uint8, near uint32, away int32, minute, hour, day, month, week uint32) {
		loc := zone(t, zones[int(inZone)%len(zones)])
		after := time.Unix(100_000_000+int64(near)%2_000_000_000, 0) // 1973 to 2036
		if _, end := after.In(loc).ZoneBounds(); !end.IsZero() {
			after = end // the next change of the clock
		}
		after = after.Add(time.Duration(away%200_000) * time.Second)
		m := modelOf([5]uint32{minute, hour, day, month, week})
		s, err := Parse(m.spec, loc)
		if err != nil {
			if strings.Contains(err.Error(), "no such day") {
				return
			}
			t.Fatal(err)
		}
		last := after.Add(10 * 24 * time.Hour)
		for range 3 {
			want, ok := m.next(after, last, loc)
			got := s.Next(after)
			if ok && !got.Equal(want) || !ok && !got.After(last) {
				t.Fatalf("%s in %v after %v: %v, want %v (%t)", m.spec, loc, after.In(loc), got, want.In(loc), ok)
			}
			if !got.After(after) {
				t.Fatalf("%s in %v: %v is not after %v", m.spec, loc, got, after)
			}
			if !ok {
				return
			}
			if latest := s.latest(after.Add(-24*time.Hour), got.Add(time.Nanosecond)); !latest.Equal(got) {
				t.Fatalf("%s in %v: the latest up to %v is %v", m.spec, loc, got, latest)
			}
			after = got
		}
	})
}
