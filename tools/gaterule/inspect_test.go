package gaterule

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// inspected returns what breaks the rule in one file of tests, as lines and sentences.
func inspected(t *testing.T, name, body string) []violation {
	t.Helper()
	found, err := inspect(fstest.MapFS{name: {Data: []byte(body)}})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestEachPlantedViolationIsFound(t *testing.T) {
	for body, want := range map[string]string{
		`time.Sleep(time.Millisecond)`:                                                        "time.Sleep",
		`<-time.After(d)`:                                                                     "time.After",
		`for range time.Tick(d) {}`:                                                           "time.Tick",
		`time.NewTicker(time.Hour)`:                                                           "time.NewTicker",
		`time.NewTimer(5 * time.Second)`:                                                      "NewTimer shorter",
		`time.AfterFunc(brief, f)`:                                                            "AfterFunc shorter",
		`context.WithTimeout(ctx, 2*time.Second)`:                                             "WithTimeout shorter",
		`context.WithTimeoutCause(ctx, time.Duration(9e9), e)`:                                "WithTimeoutCause shorter",
		`context.WithDeadline(ctx, time.Now().Add(time.Second/2))`:                            "WithDeadline shorter",
		`conn.SetReadDeadline(time.Now().Add(9999 * time.Millisecond))`:                       "SetReadDeadline shorter",
		`_ = http.Client{Timeout: 3 * time.Second}`:                                           "a Timeout shorter",
		`if time.Since(began) > time.Second {}`:                                               "a bound on a duration",
		`took := time.Since(began); if ok && took < limit {}`:                                 "a bound on a duration",
		`var x bool; x = 2*time.Until(end) >= a.b`:                                            "a bound on a duration",
		`synctest.Test(t, func(t *testing.T) {}); time.Sleep(1)`:                              "time.Sleep",
		`t.Run("x", func(t *testing.T) { go func() { time.Sleep(1) }() })`:                    "time.Sleep",
		`patience := 2 * time.Second; context.WithTimeout(ctx, patience)`:                     "WithTimeout shorter",
		`const d = time.Second; f := func(d time.Duration) { time.NewTimer(d) }`:              "",
		`patience := time.Minute; patience = time.Second; context.WithTimeout(ctx, patience)`: "",
		`var took = time.Since(began); if took > time.Second {}`:                              "a bound on a duration",
		`if time.Now().Sub(began) > time.Second {}`:                                           "a bound on a duration",
		`net.DialTimeout("tcp", a, time.Second)`:                                              "DialTimeout shorter",
		`context.WithTimeout(args())`:                                                         "",
		`nap(); synctest.Test(t, func(t *testing.T) { nap() })`:                               "",
		`both(); synctest.Test(t, func(t *testing.T) { both() })`:                             "time.Sleep", // both's own
	} {
		source := "package p\n\nconst brief = 10 * time.Millisecond\n\nfunc TestX(t *testing.T) {\n" + body + "\n}\n\nfunc nap() {}\n"
		if strings.Contains(body, "both") {
			source += "\nfunc both() { time.Sleep(1) }\n"
		}
		found := inspected(t, "p/x_test.go", source)
		switch {
		case want == "" && len(found) > 0:
			t.Errorf("%s: found %v, want nothing", body, found)
		case want != "" && (len(found) != 1 || !strings.Contains(found[0].what, want)):
			t.Errorf("%s: found %v, want one with %q", body, found, want)
		}
	}
}

func TestWhatKeepsTheRuleIsLeftAlone(t *testing.T) {
	for what, source := range map[string]string{
		"a literal in a bubble":    "func TestX(t *testing.T) { synctest.Test(t, func(t *testing.T) { go func() { time.Sleep(1) }() }) }",
		"a function in a bubble":   "func TestX(t *testing.T) { synctest.Test(t, body) }\nfunc body(t *testing.T) { time.Sleep(1) }",
		"what makes the body":      "func TestX(t *testing.T) { synctest.Test(t, body(1)) }\nfunc body(n int) func(t *testing.T) { return func(t *testing.T) { time.Sleep(1) } }",
		"a helper of helpers":      "func TestX(t *testing.T) { synctest.Test(t, func(t *testing.T) { a() }) }\nfunc a() { b() }\nfunc b() { time.Sleep(1) }",
		"a starter":                "func bubble(t *testing.T, f func()) { synctest.Test(t, func(*testing.T) { f() }) }\nfunc TestX(t *testing.T) { bubble(t, func() { time.Sleep(1) }) }",
		"a method of an interface": "type slow struct{}\nfunc (slow) RoundTrip() { time.Sleep(1) }\nfunc TestX(t *testing.T) { synctest.Test(t, func(t *testing.T) { use(slow{}) }) }",
		"a recursive helper":       "func TestX(t *testing.T) { synctest.Test(t, func(t *testing.T) { a(3) }) }\nfunc a(n int) { time.Sleep(1); a(n-1) }",
		"a generous limit":         "func TestX(t *testing.T) { context.WithTimeout(ctx, time.Minute); time.NewTimer(10*time.Second) }",
		"a deadline in the past":   "func TestX(t *testing.T) { context.WithDeadline(ctx, time.Now().Add(-time.Second)); context.WithTimeout(ctx, 0) }",
		"a benchmark":              "func BenchmarkX(b *testing.B) { time.Sleep(1) }",
		"a duration that is shown": "func TestX(t *testing.T) { t.Log(time.Since(began)) }",
	} {
		if found := inspected(t, "p/x_test.go", "package p\n\n"+source+"\n"); len(found) > 0 {
			t.Errorf("%s: found %v", what, found)
		}
	}
}

func TestFilesOfTheSoakAndCodeThatIsNoTestAreLeftOut(t *testing.T) {
	const nap = "package p\n\nfunc F() { time.Sleep(1) }\n"
	for name, want := range map[string]int{"p/x_test.go": 1, "p/x.go": 0, "p/storetest/x.go": 1, "p/testdata/x_test.go": 0} {
		if found := inspected(t, name, nap); len(found) != want {
			t.Errorf("%s: found %v, want %d", name, found, want)
		}
	}
	for tag, want := range map[string]int{"soak": 0, "soak && !race": 0, "unix && soak": 0, "unix": 1, "!soak": 1, "race || soak": 1} {
		if found := inspected(t, "p/x_test.go", fmt.Sprintf("//go:build %s\n\n%s", tag, nap)); len(found) != want {
			t.Errorf("%s: found %v, want %d", tag, found, want)
		}
	}
}
