package simulate

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/sim"
)

// parsed is the scenario of that text, or the test fails.
func parsed(t *testing.T, text string) *Scenario {
	t.Helper()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func simulated(t *testing.T, name string) *Result {
	t.Helper()
	text, err := Source(name)
	if err != nil {
		t.Fatal(err)
	}
	res, err := parsed(t, string(text)).Run(t.Context(), func(string, float64) {})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (r *Result) served(t *testing.T, policy, class string) float64 {
	t.Helper()
	for _, o := range r.Outcomes {
		for _, c := range append(o.Classes, o.Total) {
			if o.Policy == policy && c.Name == class && c.Served != nil {
				return *c.Served
			}
		}
	}
	t.Fatalf("nothing is said of %s under %s", class, policy)
	return 0
}

// Each built-in scenario shows what its title promises.
func TestBuiltInScenariosShowWhatTheyPromise(t *testing.T) {
	storm := simulated(t, "retry-storm")
	answers := func(policy int, from, to float64) (sum int) {
		for _, p := range storm.Outcomes[policy].Timeline {
			if p.At >= from && p.At < to {
				sum += p.OK
			}
		}
		return sum
	}
	const unprotected, limited = 0, 2
	if before, after := answers(unprotected, 5, 15), answers(unprotected, 50, 60); before < 1000 || after > before/10 {
		t.Errorf("unprotected there are %d answers in ten seconds before the storm, and %d long after it", before, after)
	}
	if before, after := answers(limited, 5, 15), answers(limited, 50, 60); after < before*8/10 {
		t.Errorf("with the limiter there are %d answers in ten seconds before the storm, and %d long after it", before, after)
	}
	halved := simulated(t, "halved-backend")
	if critical := halved.served(t, "limiter", "critical"); critical < 0.98 {
		t.Errorf("with half of the backend the limiter serves %.2f of what is critical", critical)
	}
	hopeless := simulated(t, "hopeless")
	if critical, low := hopeless.served(t, "limiter", "critical"), hopeless.served(t, "limiter", "low"); critical < 0.98 || low > 0.1 {
		t.Errorf("at ten times the capacity the limiter serves %.2f of what is critical and %.2f of the rest", critical, low)
	}
	burst := simulated(t, "burst")
	if with, best := burst.served(t, "limiter", "all"), burst.served(t, "oracle", "all"); with < 0.7*best {
		t.Errorf("in bursts the limiter serves %.2f, the oracle %.2f", with, best)
	}
	shop := simulated(t, "shop") // the example that users see first
	if order, without := shop.served(t, "limiter", "order"), shop.served(t, "unprotected", "order"); order < 0.97 || without > 0.2 {
		t.Errorf("of the orders the limiter serves %.2f, and %.2f are without it", order, without)
	}
	if all, without := shop.served(t, "limiter", "all"), shop.served(t, "unprotected", "all"); all < 1.5*without {
		t.Errorf("of all calls the limiter serves %.2f, and %.2f are without it", all, without)
	}
	if first, second := shop.Outcomes[0], shop.Outcomes[1]; first.Policy != "unprotected" || first.Answered.Recovered || second.Policy != "limiter" || !second.Answered.Recovered {
		t.Errorf("%s recovers: %v, and %s: %v", first.Policy, first.Answered.Recovered, second.Policy, second.Answered.Recovered)
	}
}

// The example names every field there is, in a place where it means something or in a comment.
func TestTheExampleHasEveryField(t *testing.T) {
	text, err := Source("shop")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{
		Description{}, Arrivals{}, Ramp{}, Bursts{}, Step{}, Class{}, Distribution{}, LogNormal{}, Uniform{}, Part{}, Backend{}, NWay{}, Degrading{}, Database{},
		sim.Retry{}, sim.Change{}, Policy{}, Semaphore{}, Limiter{}, sim.Fleet{}, Trouble{}, Subsets{},
	} {
		for _, name := range fieldNames(reflect.TypeOf(v)) {
			if !strings.Contains(string(text), `"`+name+`":`) {
				t.Errorf("%T: the example has no %q", v, name)
			}
		}
	}
}

// small is a scenario that takes no time. A test replaces a part of it.
const small = `{
	"duration": "2s",
	"arrivals": {"poisson": "0.5x"},
	"classes": [{"service": {"exponential": "10ms"}}],
	"backend": {"nway": {"slots": 4}}
}`

func TestWhatIsWrongIsSaidWithItsLine(t *testing.T) {
	for name, test := range map[string]struct{ old, replaced, says string }{
		"no JSON":               {`{`, `[`, "line "},
		"cut off":               {"4}}\n}", "4}}", "line 5: unexpected end"},
		"unknown field":         {`"slots": 4`, "\n\"slot\": 4", `line 6: unknown field "slot": want slots`},
		"given twice":           {`"duration": "2s"`, `"duration": "2s", "duration": "2s"`, `line 2: the field "duration" is given twice`},
		"behind a comment":      {`{`, "// {\n{\n\"x\": 1,", `line 3: unknown field "x"`},
		"no duration":           {`"2s"`, `2`, `line 2: 2 is no duration: want text such as "1.5s"`},
		"no number":             {`4`, `"four"`, `line 5: "four" does not belong here: want a whole number`},
		"null":                  {`4`, `null`, "line 5: null does not belong here"},
		"no rate":               {`"0.5x"`, `"fast"`, `line 3: "fast" is no rate`},
		"negative rate":         {`"0.5x"`, `-1`, "line 3: -1 is no rate"},
		"two kinds":             {`{"poisson": "0.5x"}`, `{"poisson": 1, "constant": 1}`, "line 3: 2 kinds are given here: want exactly one of poisson, constant"},
		"no arrivals":           {`"arrivals": {"poisson": "0.5x"},`, ``, "arrivals: 0 kinds"},
		"no object":             {`{"nway": {"slots": 4}}`, `7`, "line 5: want an object in braces"},
		"no list":               {`[{"service": {"exponential": "10ms"}}]`, `{}`, "line 4: want a list in brackets"},
		"no priority":           {`"service"`, `"priority": "urgent", "service"`, `line 4: spillway: unknown priority "urgent"`},
		"unknown law":           {`"duration"`, `"policies": [{"limiter": {"law": "best"}}], "duration"`, `unknown law "best": want adaptive`},
		"fixed without limit":   {`"duration"`, `"policies": [{"limiter": {"law": "fixed"}}], "duration"`, "limit is 0"},
		"no semaphore":          {`"duration"`, `"policies": [{"semaphore": {}}], "duration"`, "slots is 0"},
		"two of a name":         {`"duration"`, `"policies": [{"limiter": {}}, {"limiter": {}}], "duration"`, `two policies are called "limiter"`},
		"no duration at all":    {`"duration": "2s",`, ``, "the duration is 0s"},
		"no work":               {`"10ms"`, `"0s"`, "use a positive mean"},
		"no classes":            {`{"service": {"exponential": "10ms"}}`, ``, "Classes"},
		"warmup too long":       {`"duration": "2s"`, `"duration": "2s", "warmup": "3s"`, "the warmup is 3s"},
		"a change of nothing":   {`"duration"`, `"changes": [{"at": "1s"}], "duration"`, "changes nothing"},
		"far too many calls":    {`"0.5x"`, `1e9`, "too many"},
		"many because of tries": {`"duration"`, `"retry": {"attempts": 1000000}, "duration"`, "too many"},
	} {
		text := strings.Replace(small, test.old, test.replaced, 1)
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", name, err, test.says)
		}
	}
}

// Some editors write a byte order mark, which was an error of the first character.
func TestAByteOrderMarkIsNoPartOfAScenario(t *testing.T) {
	for _, before := range []string{"\ufeff", "\ufeff// a comment\r\n"} {
		if _, err := Parse([]byte(before + small)); err != nil {
			t.Errorf("%q: %v", before, err)
		}
	}
}

func TestWithoutPoliciesAServiceIsUnlimitedAndLimited(t *testing.T) {
	res, err := parsed(t, small).Run(t.Context(), func(string, float64) {})
	if err != nil || len(res.Outcomes) != 2 || res.Outcomes[0].Policy != "unlimited" || res.Outcomes[1].Policy != "limiter" {
		t.Fatalf("%+v, %v", res, err)
	}
	for _, o := range res.Outcomes {
		if n := o.Total; n.Offered == 0 || n.Offered != n.OK+n.Late+n.Failed+n.Refused+n.Left || len(o.Timeline) < points {
			t.Errorf("%s: %+v, %d points", o.Policy, n, len(o.Timeline))
		}
	}
	text, err := json.Marshal(res)
	if err != nil || !strings.Contains(string(text), `"scenario":{"duration":"2s"`) {
		t.Errorf("%v, %.200s", err, text)
	}
}

func TestAnInterruptedRunKeepsWhatWasFinished(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	res, err := parsed(t, small).Run(ctx, func(policy string, share float64) {
		if policy == "limiter" && share > 0.5 {
			cancel()
		}
	})
	if err != nil || !res.Partial || len(res.Outcomes) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	var text strings.Builder
	if res.Print(&text); !strings.Contains(text.String(), "interrupted after 1 of 2 policies") {
		t.Error(text.String())
	}
}

func TestAFigureThatThereIsNotIsNotZero(t *testing.T) {
	quiet := strings.Replace(small, `{"poisson": "0.5x"}`, `{"steps": [{"from": "3s", "rate": 1}]}`, 1)
	res, err := parsed(t, quiet).Run(t.Context(), func(string, float64) {})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := res.table().Text(&text); err != nil || !strings.Contains(strings.Join(strings.Fields(text.String()), " "), "left unlimited 0 – – – – – – – –") {
		t.Errorf("without a call: %s, %v", text.String(), err)
	}
}

func TestThePageHasEveryPolicyAndEscapesItsText(t *testing.T) {
	named := strings.Replace(small, `"duration"`, `"title": "<script>alert(1)</script>", "policies": [{"unlimited": {}}, {"name": "<b>ours", "limiter": {}}], "duration"`, 1)
	res, err := parsed(t, named).Run(t.Context(), func(string, float64) {})
	if err != nil {
		t.Fatal(err)
	}
	page, err := res.Page()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"unlimited", "&lt;b&gt;ours", "Good answers over time", "Limits over time"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(page, "<b>ours") || strings.Contains(page, "<script>alert") || strings.Count(page, "<svg class=\"chart lines") != 3 {
		t.Errorf("the page is not what was meant, with %d drawings", strings.Count(page, "<svg class=\"chart lines"))
	}
}

// FuzzParse: any text is a scenario that can be simulated, or one line that says what is wrong.
func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	for _, name := range Builtin() {
		text, err := Source(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse(text)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || err.Error() == "" {
				t.Errorf("%q", err)
			}
			return
		}
		if len(s.Policies) == 0 || !json.Valid(s.text) {
			t.Errorf("%+v", s)
		}
		again, err := Parse(s.text)
		if err != nil || len(again.Policies) != len(s.Policies) {
			t.Errorf("read again: %v", err)
		}
	})
}
