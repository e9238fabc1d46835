package debugpage

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestFiguresAreShort(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{number(0), "0"}, {number(999), "999"}, {number(1000), "1,000"}, {number(99999), "99,999"}, {number(100000), "100 k"},
		{number(999999), "1.00 M"}, {number(12345678), "12.3 M"}, {number(math.MaxUint64), "18.4 E"},
		{digits(0), "0"}, {digits(.001), "< 0.01"}, {digits(1.234), "1.23"}, {digits(9.96), "10.0"}, {digits(99.6), "100"}, {digits(12345), "12,345"},
		{digits(math.Inf(1)), "1.00 E"}, {rate(math.NaN()), "–"}, {rate(2), "2.00/s"},
		{percent(0, 0), "–"}, {percent(0, 1), "0 %"}, {percent(1, 1), "100 %"}, {percent(1, 3), "33 %"}, {percent(1, 1e6), "< 0.1 %"},
		{percent(99999, 100000), "> 99.9 %"}, {percent(1, 20), "5 %"}, {percent(math.NaN(), 1), "–"},
		{span(0), "0"}, {span(-1), "0"}, {span(1500), "1.50 µs"}, {span(999600), "1.00 ms"}, {span(12 * time.Millisecond), "12.0 ms"},
		{span(999600 * time.Microsecond), "1.00 s"}, {span(200 * time.Second), "3 min 20 s"}, {span(2 * time.Hour), "2 h"}, {span(50 * time.Hour), "2 d 2 h"},
		{ago(0), "just now"}, {ago(7900 * time.Millisecond), "7 s ago"}, {ago(44 * time.Second), "40 s ago"}, {ago(200 * time.Second), "3 min ago"},
		{sentence(""), ""}, {sentence("holding: ok"), "Holding: ok."}, {sentence("really?"), "Really?"}, {sentence("über"), "Über."},
	} {
		if got := strings.ReplaceAll(c.got, nbsp, " "); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestALineStaysWithinItsChart(t *testing.T) {
	missing := math.NaN()
	path, area := trace([]float64{0, 5, 10, missing, missing, missing, 20, math.Inf(1), -1}, 10)
	if want := "M0 50h.01L2 25L4 0M12 0h.01L16 50"; path != want {
		t.Errorf("path %s, want %s", path, want)
	}
	if want := "M0 50V50L2 25L4 0V50ZM12 50V0L16 50V50Z"; area != want {
		t.Errorf("area %s, want %s", area, want)
	}
	if path, area := trace([]float64{missing}, 1); path != "" || area != "" {
		t.Errorf("nothing is drawn as %q, %q", path, area)
	}
}
