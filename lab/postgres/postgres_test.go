package postgres

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestAServerIsCheckedAndNeverShown(t *testing.T) {
	for url, want := range map[Server]string{
		"":                           "",
		"postgres://postgres@/x":     "",
		"postgresql://a:sesame@b/c":  "",
		"host=a password=sesame":     "not a URL",
		"mysql://a:sesame@b/c":       "not a URL",
		"postgres://a:sesame@b:%x/c": "not a URL",
	} {
		err := url.Check()
		if (err == nil) != (want == "") || err != nil && (!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "sesame")) {
			t.Errorf("%v", err)
		}
		if text, err := json.Marshal(struct{ S Server }{url}); err != nil || strings.Contains(fmt.Sprintf("%s %v %#v %+v", text, url, url, struct{ S Server }{url}), "sesame") {
			t.Errorf("shown: %s, %v", text, err)
		}
	}
}

func TestAPasswordOnTheCommandLineIsRefused(t *testing.T) {
	before := os.Args
	t.Cleanup(func() { os.Args = before })
	const open, secret = "postgres://postgres@127.0.0.1/postgres", "postgres://postgres:sesame@127.0.0.1/postgres"
	os.Args = []string{"spillway", "lab", "H", "--postgres=" + secret}
	if err := Server(secret).Check(); err == nil || !strings.Contains(err.Error(), Env) || strings.Contains(err.Error(), "sesame") {
		t.Errorf("%v", err)
	}
	os.Args = []string{"spillway", "lab", "H", "--postgres", open}
	if err := Server(open).Check(); err != nil {
		t.Error(err)
	}
}
