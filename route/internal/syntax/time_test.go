package syntax

import (
	"testing"
	"time"
)

// A time that is stored in UTC is also written in UTC, perhaps for another client.
func TestATimeThatUTCCannotWriteIsRefused(t *testing.T) {
	for text, ok := range map[string]bool{
		"0000-01-01T00:00:00+00:01": false, "0000-01-01T00:01:00+00:01": true, "9999-12-31T23:59:00-00:01": false, "9999-12-31T23:58:59-00:01": true,
		"1998-12-31T23:59:60Z": false, // a time.Time cannot hold a leap second
	} {
		at, got := ParseTime(text)
		if got != ok {
			t.Errorf("%s: %t", text, got)
		}
		for _, at := range []time.Time{at, at.UTC()} {
			if _, err := at.MarshalJSON(); ok && err != nil {
				t.Error(err)
			}
		}
	}
}

func TestLeapSecondsAreTheLastOfAMonth(t *testing.T) {
	for text, ok := range map[string]bool{
		"1998-12-31T23:59:60Z": true, "1998-12-31t15:59:60.123-08:00": true, "1972-07-01T00:59:60+01:00": true, "2015-06-30T23:59:60.9z": true,
		"1998-12-31T23:59:61Z": false, "1998-12-31T23:58:60Z": false, "1998-12-31T22:59:60Z": false, "1998-12-30T23:59:60Z": false, "1998-12-31T23:59:60+01:00": false,
	} {
		if isDateTime(text) != ok {
			t.Errorf("%s: %t", text, !ok)
		}
	}
}
