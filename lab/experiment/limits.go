package experiment

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/alecthomas/kong"
)

// check holds a configuration against the limits in its tags: least, most, and above,
// which a value has to exceed. They are of a number or a duration, or of each in a list.
// A list that has a default must not be empty.
func check(config any) error {
	k, err := kong.New(config)
	if err != nil {
		return err
	}
	for _, f := range k.Model.Flags {
		if want := wants(f.Tag); want != "" && !within(f) {
			return fmt.Errorf("%s is %s: want %s", f.Name, shown(f.Target), want)
		}
	}
	return nil
}

// wants are the limits of a flag in words; empty if there are none.
func wants(t *kong.Tag) string {
	least, most, above := t.Get("least"), t.Get("most"), t.Get("above")
	switch {
	case above != "" && most != "":
		return fmt.Sprintf("more than %s and at most %s", above, most)
	case above != "":
		return "more than " + above
	case least != "" && most != "":
		return fmt.Sprintf("%s to %s", least, most)
	case least != "":
		return "at least " + least
	case most != "":
		return "at most " + most
	}
	return ""
}

func within(f *kong.Flag) bool {
	values := []reflect.Value{f.Target}
	if f.Target.Kind() == reflect.Slice {
		values = nil
		for _, v := range f.Target.Seq2() {
			values = append(values, v)
		}
		if len(values) == 0 {
			return !f.HasDefault
		}
	}
	for _, v := range values {
		x := v.Convert(reflect.TypeFor[float64]()).Float()
		meets := func(tag string, ok func(limit float64) bool) bool {
			return !f.Tag.Has(tag) || ok(limit(f.Tag.Get(tag)))
		}
		// A value that is not a number meets no limit.
		if !meets("least", func(l float64) bool { return x >= l }) || !meets("most", func(l float64) bool { return x <= l }) || !meets("above", func(l float64) bool { return x > l }) {
			return false
		}
	}
	return true
}

// limit is a tag's number or duration.
func limit(s string) float64 {
	if d, err := time.ParseDuration(s); err == nil {
		return float64(d)
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(fmt.Sprintf("%q is no limit: want a number or a duration", s)) // a tag is wrong: every test of it says so
	}
	return x
}
