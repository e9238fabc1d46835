package route

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/route/internal/syntax"
)

// moments maps texts to whether they are RFC 3339 date-times.
var moments = map[string]bool{
	"2006-01-02T15:04:05Z": true, "2006-01-02t15:04:05z": true, "2006-01-02T15:04:05.5Z": true, "2006-01-02T15:04:05.123456789012-00:00": true,
	"0000-02-29T00:00:00Z": true, "9999-12-31T23:59:59.999+23:59": true, "2024-02-29T23:59:59-23:59": true, "0001-01-01T00:00:00Z": true,
	"2006-01-02T01:00:00+24:00": false, "2006-01-02T01:00:00+24:01": false, "2006-01-02T01:00:00-99:00": false, "2006-01-02T01:00:00+00:60": false,
	"2006-01-02T1:00:00Z": false, "2006-01-02T15:04:05,5Z": false, "2006-01-02T15:04:05.Z": false, "2006-01-02 15:04:05Z": false, "2006-01-02T15:04:05": false,
	"2006-01-02T15:04Z": false, "2006-01-02": false, "": false, "2006-01-02T24:00:00Z": false, "2006-01-02T15:60:00Z": false, "2006-01-02T15:04:61Z": false,
	"2023-02-29T00:00:00Z": false, "2006-13-01T00:00:00Z": false, "2006-00-01T00:00:00Z": false, "2006-01-00T00:00:00Z": false, "12006-01-02T15:04:05Z": false,
	"+006-01-02T15:04:05Z": false, "2006-01-02T15:04:05+0100": false, "2006-01-02T15:04:05+01": false, "2006-01-02T15:04:05+1:00": false, "2006-01-02T15:04:05ZZ": false,
	"2006-01-02T15:04:05.5.5Z": false, "2006-01-02T15:04:05 Z": false, "2006-1-2T15:04:05Z": false, "２006-01-02T15:04:05Z": false, "2006-01-02T15:04:05.5zZ": false,
}

func TestATimeIsADateTimeOfRFC3339WhereverItComesFrom(t *testing.T) {
	type in struct {
		Query  time.Time            `query:"at"`
		Header *time.Time           `header:"X-At"`
		Words  string               `query:"words" validate:"format=date-time"`
		At     time.Time            `json:"at" form:"at" xml:"at"`
		Maybe  Optional[time.Time]  `json:"maybe" form:"maybe" xml:"maybe"`
		List   []*time.Time         `json:"list" form:"list" xml:"list"`
		Map    map[string]time.Time `json:"map" xml:"-"`
	}
	s := serving(t, func(f func(context.Context, in) (Empty, error)) *Route { return New("POST", "/", f) }, Config{})
	for text, ok := range moments {
		status := map[bool]int{true: 204, false: 400}[ok]
		quoted, _ := json.Marshal(text)
		var marked strings.Builder
		_ = xml.EscapeText(&marked, []byte(text))
		escaped := url.QueryEscape(text)
		for _, body := range []string{`{"at":%s}`, `{"maybe":%s}`, `{"list":[%s]}`, `{"map":{"a":%s}}`} {
			if w := do(s, "POST", "/", "application/json", fmt.Sprintf(body, quoted)); w.Code != status {
				t.Errorf("%s of %q: %d %s", body, text, w.Code, w.Body)
			}
		}
		for _, name := range []string{"at", "maybe", "list"} {
			if w := do(s, "POST", "/", "application/x-www-form-urlencoded", name+"="+escaped); w.Code != status {
				t.Errorf("%s=%s: %d %s", name, escaped, w.Code, w.Body)
			}
			if w := do(s, "POST", "/", "application/xml", "<in><"+name+">"+marked.String()+"</"+name+"></in>"); w.Code != status && strings.TrimSpace(text) == text {
				t.Errorf("<%s>%s: %d %s", name, text, w.Code, w.Body)
			}
		}
		for _, query := range []string{"?at=", "?words="} {
			if w := do(s, "POST", "/"+query+escaped, "application/json", "{}"); w.Code != status {
				t.Errorf("%s%s: %d %s", query, text, w.Code, w.Body)
			}
		}
		if w := do(s, "POST", "/", "application/json", "{}", "X-At", text); w.Code != status {
			t.Errorf("header %q: %d %s", text, w.Code, w.Body)
		}
	}
	if w := do(s, "POST", "/", "application/json", `{"at":"2006-01-02\u005415:04:05\u002e5z"}`); w.Code != 204 || !s.got.At.Equal(time.Date(2006, 1, 2, 15, 4, 5, 5e8, time.UTC)) {
		t.Errorf("with escapes: %d %s, %v", w.Code, w.Body, s.got.At)
	}
	for _, body := range []string{`{"at":1}`, `{"at":{}}`, `{"at":["2006-01-02T15:04:05Z"]}`, `{"at":null}`, `{"at":true}`} {
		if w := do(s, "POST", "/", "application/json", body); w.Code != 400 {
			t.Errorf("%s: %d", body, w.Code)
		}
	}
}

// stamp is decoded and encoded by the methods of its embedded time.Time.
type stamp struct{ time.Time }

// spoken has a field of every type that can be bound and encoded.
type spoken struct {
	Text   string                `json:"text" form:"text" xml:"text"`
	Bytes  []byte                `json:"bytes" form:"bytes" xml:"bytes"`
	Bool   bool                  `json:"bool" form:"bool" xml:"bool"`
	Int    int64                 `json:"int" form:"int" xml:"int"`
	Small  int8                  `json:"small" form:"small" xml:"small"`
	Uint   uint64                `json:"uint" form:"uint" xml:"uint"`
	Float  float64               `json:"float" form:"float" xml:"float"`
	Single *float32              `json:"single" form:"single" xml:"single"`
	Number json.Number           `json:"number" form:"number" xml:"number"`
	Span   time.Duration         `json:"span" form:"span" xml:"span"`
	At     time.Time             `json:"at" form:"at" xml:"at"`
	Maybe  Optional[time.Time]   `json:"maybe,omitzero" form:"maybe" xml:"maybe"`
	Times  []*time.Time          `json:"times" form:"times" xml:"times"`
	Stamp  stamp                 `json:"stamp" form:"stamp" xml:"stamp"`
	Stamps map[string]stamp      `json:"stamps" xml:"-"`
	Addr   netip.Addr            `json:"addr" form:"addr" xml:"addr"`
	Rates  map[string]float32    `json:"rates" xml:"-"`
	Counts []Optional[uint16]    `json:"counts" form:"counts" xml:"counts"`
	Nums   []json.Number         `json:"nums" form:"nums" xml:"nums"`
	Any    any                   `json:"any" xml:"-"`
	Raw    json.RawMessage       `json:"raw" xml:"-"`
	Sub    *spoken               `json:"sub,omitempty" xml:"sub"`
	Null   Optional[*stamp]      `json:"null,omitzero" xml:"-"`
	When   Optional[string]      `json:"when,omitzero" form:"when" xml:"when" validate:"format=date-time"`
	Day    Optional[string]      `json:"day,omitzero" form:"day" xml:"day" validate:"format=date"`
	Link   Optional[string]      `json:"link,omitzero" form:"link" xml:"link" validate:"format=uri"`
	Mail   Optional[string]      `json:"mail,omitzero" form:"mail" xml:"mail" validate:"format=email"`
	Mails  Optional[[]string]    `json:"mails,omitzero" form:"mails" xml:"mails" validate:"format=email"`
	ID     Optional[string]      `json:"id,omitzero" form:"id" xml:"id" validate:"format=uuid"`
	Deep   [][]map[string]string `json:"deep" xml:"-"`
}

// Every value that binds can be encoded, and the encoded value binds again to an equal encoding.
// Texts have the format that the document gives.
func FuzzWhatBindsIsEncodedAndReadBack(f *testing.F) {
	const j, form, x = "application/json", "application/x-www-form-urlencoded", "application/xml"
	for text := range moments {
		quoted, _ := json.Marshal(text)
		f.Add(j, fmt.Sprintf(`{"at":%[1]s,"maybe":%[1]s,"times":[%[1]s],"when":%[1]s}`, quoted))
		f.Add(j, fmt.Sprintf(`{"stamp":%[1]s,"stamps":{"a":%[1]s},"null":%[1]s}`, quoted))
		f.Add(form, "at="+url.QueryEscape(text)+"&stamp="+url.QueryEscape(text))
		f.Add(form, "stamp="+url.QueryEscape(text))
		f.Add(x, "<s><stamp>"+text+"</stamp></s>")
	}
	for _, seed := range []string{
		`{"text":"\u2028\ud83d\ude00<>\u0000","bytes":"AQI=","bool":true,"int":1.0,"small":-128,"uint":18446744073709551615,"float":-0.0,"single":1e-50,"number":1E400,"span":1e9,"addr":"fe80::1%eth0"}`,
		`{"number":"1"}`, `{"number":"abc"}`, `{"number":null}`, `{"nums":[1,-0,1e5,0.10]}`, `{"nums":["x"]}`, `{"number":01}`, `{"number":+1}`,
		`{"any":{"a":[1e22,null,"\u0001"]},"raw": [ 1e999 , {"<":"&"} ],"rates":{"":3.4e38},"counts":[0,65535],"deep":[[],[{}],null]}`,
		`{"any":1e999}`, `{"rates":{"a":1e39}}`, `{"sub":{"sub":{"at":"2006-01-02T15:04:05Z"}},"null":null}`, `{"raw":null,"any":null,"sub":null,"single":null}`, `{"bytes":"AQ\n=="}`, `{"addr":""}`,
		`{"link":"http://[::1]:80/%41?a=b#c","mail":"a.b@c.example","mails":["a@b.c"],"id":"00000000-0000-0000-0000-000000000000","day":"2024-02-29"}`, `{"link":"C:\\temp"}`, `{"mail":"a@b!c.d"}`,
	} {
		f.Add(j, seed)
	}
	for _, seed := range []string{"float=NaN", "float=Inf", "single=-infinity", "float=0x1p-2", "number=0x10", "number=NaN", "number=1e5&nums=1&nums=-0.0", "number=", "int=%2B5&small=007", "bytes=%ff%00", "text=%ff", "span=-1.5s", "addr=::1", "counts=1&counts=2", "float=1_0", "float=.5e1", "stamp=x"} {
		f.Add(form, seed)
		f.Add(x, "<s>"+regexp.MustCompile(`(\w+)=([^&]*)&?`).ReplaceAllString(seed, "<$1>$2</$1>")+"</s>")
	}
	m := NewMux(Config{})
	check(f, m.Add(New("POST", "/", func(_ context.Context, in spoken) (spoken, error) { return in, nil })))
	f.Fuzz(func(t *testing.T, media, body string) {
		w := do(m, "POST", "/", media, body)
		if w.Code >= 400 && w.Code < 500 {
			return
		}
		first := w.Body.String()
		if w.Code != 200 {
			t.Fatalf("%s is bound, and cannot be encoded: %d %s", body, w.Code, first)
		}
		again := do(m, "POST", "/", j, first)
		if again.Code != 200 || again.Body.String() != first {
			t.Fatalf("%s\nis encoded as %s\nwhich is read back as %d %s", body, first, again.Code, again.Body)
		}
		var out spoken
		if err := json.Unmarshal([]byte(first), &out); err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		var texts struct {
			At, Maybe string
			Times     []string
		}
		if err := json.Unmarshal([]byte(first), &texts); err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		formatted := map[string][]string{
			"date-time": append(texts.Times, texts.At, texts.Maybe, out.When.Value), "date": {out.Day.Value}, "uri": {out.Link.Value},
			"email": append(out.Mails.Value, out.Mail.Value), "uuid": {out.ID.Value},
		}
		for format, all := range formatted {
			for _, text := range all {
				if text != "" && !syntax.Formats[format](text) {
					t.Errorf("%q is a %s", text, format)
				}
			}
		}
	})
}

// encoding/json writes a json.Number as a number, whatever its kind is to package reflect.
func TestAJSONNumberIsANumberInTheDocument(t *testing.T) {
	type in struct {
		N json.Number `json:"n"`
		Q json.Number `query:"q" default:"1.5"`
	}
	m := NewMux(Config{})
	check(t, m.Add(New("POST", "/", func(_ context.Context, r in) (in, error) { return r, nil })))
	doc, err := m.OpenAPI(Info{})
	if err != nil || strings.Count(string(doc), `"type":"number"`) != 4 || !strings.Contains(string(doc), `"default":1.5`) {
		t.Errorf("%v\n%s", err, doc)
	}
}
