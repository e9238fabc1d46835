package route

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
)

type describedMade struct {
	Version int `json:"version"`
}

func TestAnswersAndEditsAreInTheDocument(t *testing.T) {
	var order []string
	m := NewMux(Config{})
	if err := m.Add(New("POST", "/a", func(context.Context, Empty) (string, error) { return "", nil }).
		Answers(200, Answer{Description: "Fine", Headers: map[string]string{"etag": "version"}}).
		Answers(201, Answer{Body: describedMade{}}).Answers(202, Answer{Body: Empty{}}).Answers(204, Answer{}).Answers(206, Answer{Body: File{}}).Answers(304, Answer{}).
		Answers(400, Answer{Headers: map[string]string{"X-Why": "why"}}).Answers(422, Answer{}).Answers(418, Answer{Body: describedMade{}}).
		Operation(func(op map[string]any) {
			order = append(order, "first")
			op["x-all"] = true
		}).
		Operation(func(op map[string]any) {
			order = append(order, "second")
			op["x-number"] = op["responses"].(map[string]any)["200"].(map[string]any)["description"]
		})); err != nil {
		t.Fatal(err)
	}
	if w := do(m, "POST", "/a", "", ""); w.Code != 200 {
		t.Error(w.Code)
	}
	doc := must(m.OpenAPI(Info{Title: "T", Edit: func(doc map[string]any) { doc["x-title"] = doc["info"].(map[string]any)["title"] }}))
	var d struct {
		Title string `json:"x-title"`
		Paths map[string]map[string]struct {
			All       bool   `json:"x-all"`
			Number    string `json:"x-number"`
			Responses map[string]json.RawMessage
		}
	}
	check(t, json.Unmarshal(doc, &d))
	op := d.Paths["/a"]["post"]
	if d.Title != "T" || !op.All || op.Number != "Fine" || strings.Join(order, " ") != "first second" {
		t.Errorf("%v, %s", order, doc)
	}
	for status, want := range map[string]string{
		"200": `{"content":{"application/json":{"schema":{"type":"string"}}},"description":"Fine","headers":{"Etag":{"description":"version","schema":{"type":"string"}}}}`,
		"201": `{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/DescribedMade"}}},"description":"Created"}`,
		"202": `{"description":"Accepted"}`,
		"204": `{"description":"No Content"}`,
		"206": `{"content":{"*/*":{}},"description":"Partial Content"}`,
		"304": `{"description":"Not Modified"}`,
		"418": `{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/DescribedMade"}}},"description":"I'm a teapot"}`,
		"422": `{"content":{"application/problem+json":{"schema":{"$ref":"#/components/schemas/Problem"}}},"description":"Unprocessable Entity"}`,
	} {
		if got := compact(t, op.Responses[status]); got != want {
			t.Errorf("%s: %s", status, got)
		}
	}
	if got := compact(t, op.Responses["400"]); !strings.Contains(got, `"X-Why"`) || !strings.Contains(got, "the request has faults") {
		t.Errorf("400: %s", got)
	}
}

func compact(t *testing.T, v json.RawMessage) string {
	t.Helper()
	var value any
	check(t, json.Unmarshal(v, &value))
	text := must(json.Marshal(value))
	return string(text)
}

func TestFormatsOfProblemsAreDescribed(t *testing.T) {
	m := NewMux(Config{ProblemFormat: ProblemFormat{MediaType: "application/x+json; a=b", Encode: plainly.Encode, Schema: map[string]any{"type": "object"}}})
	check(t, m.Add(New("GET", "/a", func(context.Context, Empty) (string, error) { return "", nil }).FailsWith(&Problem{Status: 409, Type: "t"})))
	own, err := m.OpenAPI(Info{})
	if err != nil || strings.Contains(string(own), "Problem\"") || !strings.Contains(string(own), `"application/x+json":{`) {
		t.Errorf("%v %s", err, own)
	}
	g := m.Group("/g", func(c *Config) { c.ProblemFormat = ProblemFormat{} })
	check(t, g.Add(New("GET", "/a", func(context.Context, Empty) (string, error) { return "", nil }).FailsWith(&Problem{Status: 409, Type: "t"})))
	if both, err := m.OpenAPI(Info{}); err != nil || !strings.Contains(string(both), problemMedia) || !strings.Contains(string(both), `"Problem409"`) {
		t.Errorf("%v %s", err, both)
	}
	m = NewMux(Config{})
	check(t, m.Add(New("GET", "/a", noContent).Operation(func(op map[string]any) { op["x"] = func() {} })))
	if _, err := m.OpenAPI(Info{}); err == nil {
		t.Error("what cannot be encoded was taken")
	}
}
