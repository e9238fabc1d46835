package httpapi

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
)

// hostile is what is sent where an id is asked for. None of it is one.
var hostile = []string{
	`' OR '1'='1`, `P000001' OR '1'='1`, `P000001;DROP TABLE patients`, `P000001--`, `P000001/**/`, `P000001) UNION SELECT 1`, `"; SELECT pg_sleep(10); --`,
	`../../../../etc/passwd`, `..\..\windows\win.ini`, `....//....//etc/passwd`, `%2e%2e%2fetc%2fpasswd`, `file:///etc/passwd`, `P000001/../P000002`, `P000001%2f..%2fP000002`,
	"P000001\x00", "\x00", "P000001\r\nSet-Cookie: a=b", "P000001\n", " P000001", "P000001 ", "p000001", "P00000１", "Р000001", "P0000001", "P00001",
	`*`, `%`, `_`, `P00000_`, `P%`, `P00000?`, `-1`, `0`, `null`, `true`, `{"$gt":""}`, `[]`, `${jndi:ldap://127.0.0.1/a}`, `{{7*7}}`, `<script>alert(1)</script>`, `$(id)`, "`id`",
	`P000001,P000002`, `P000001&id=P000002`, strings.Repeat("P", 5000), "\xff\xfe", "P000001#", "P999999999999999999999",
}

func TestWhatIsNoIDFindsNothingAndBreaksNothing(t *testing.T) {
	api, store := overCounted(t, accesstest.Verifier{})
	for _, text := range hostile {
		body, err := json.Marshal(map[string]any{"ids": []string{text}})
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range []string{"clinician", "patient"} {
			for path, r := range map[string][2]string{
				"/api/v1/patients/" + url.PathEscape(text):     {"GET", ""},
				"/api/v1/patients?id=" + url.QueryEscape(text): {"GET", ""},
				"/api/v1/patients:batch":                       {"POST", string(body)},
			} {
				store.asked.Store(0)
				w := askAs(api, token, r[0], path, r[1])
				if w.Code < 400 || w.Code >= 500 || store.asked.Load() > 0 {
					t.Errorf("%q as %s, %s %.40q: %d %s", text, token, r[0], path, w.Code, w.Body)
				}
				if len(text) > 8 && strings.Contains(w.Body.String(), text) {
					t.Errorf("%q is repeated: %s", text, w.Body)
				}
			}
		}
		for _, path := range []string{
			"/api/v1/clinicians?email=" + url.QueryEscape(text) + "&org=Weir+Road+Surgery",
			"/api/v1/clinicians?email=someone%40org01.example&org=" + url.QueryEscape(text),
		} {
			w := askAs(api, "clinician", "GET", path, "")
			if w.Code >= 500 || w.Code == 200 && !strings.Contains(w.Body.String(), `"clinicians":[]`) {
				t.Errorf("%q: %d %s", text, w.Code, w.Body)
			}
		}
	}
}
