package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/spillway-go/spillway/lab/experiment"
)

// understood is what the parser makes of a line.
func understood(t testing.TB, line string) (cli commandLine, err error) {
	t.Helper()
	cli.Lab = newLabCmd(nil)
	parser := kong.Must(&cli, kong.Name("spillway"), kong.Resolvers(experiment.Sizes()))
	words, err := translate(parser.Model.Node, strings.Fields(line))
	if err == nil {
		_, err = parser.Parse(words)
	}
	return cli, err
}

const u = "http://localhost:8080/"

func TestLinesOfOthersAreUnderstood(t *testing.T) {
	for line, ours := range map[string]string{
		// hey
		"load -n 200 -c 50 " + u:                            "load --requests 200 --clients 50 " + u,
		"load -n1000 -c50 " + u:                             "load --requests 1000 --clients 50 " + u,
		"load -z 30s -q 500 -m PUT -t 5s -o json " + u:      "load --duration 30s --rate 500 --method PUT --timeout 5s --format json " + u,
		"load -c 5 -m POST -H A:b -H C:d -d {\"a\":1} " + u: "load --clients 5 --method POST --header A:b --header C:d --body {\"a\":1} " + u,
		"load -c 5 -h2 " + u:                                "load --clients 5 --http2 " + u,
		"load -c 5 -d @- " + u:                              "load --clients 5 --body @- " + u,
		// wrk and wrk2
		"load -c400 --timeout 2s -H A:b " + u: "load --clients 400 --timeout 2s --header A:b " + u,
		"load -R2000 -z30s " + u:              "load --rate 2000 --duration 30s " + u,
		// vegeta
		"load -duration 5s -rate 50/1s -timeout 3s -header A:b":       "load --duration 5s --rate 50 --timeout 3s --header A:b",
		"load -rate 1200/m -http2 -insecure -body @x":                 "load --rate 20 --http2 --insecure --body @x",
		"load -rate 1200/m -http2=false -insecure=true -h2c -body=@x": "load --rate 20 --insecure --http2 --body @x",
		// k6
		"load --vus 10 --iterations 100 " + u:                          "load --clients 10 --requests 100 " + u,
		"load --rps 20 --insecure-skip-tls-verify --duration 30s " + u: "load --rate 20 --insecure --duration 30s " + u,
		// ab, bombardier, oha
		"load -q 20/s -z 10s --insecure --output-format json " + u: "load --rate 20 --duration 10s --insecure --format json " + u,
		// behind a flag of all commands, and other commands
		"--config /dev/null load -c 5 " + u:                     "--config /dev/null load --clients 5 " + u,
		"capacity -t 2s -m PUT -max-rate 6000/m -time=30s " + u: "capacity --timeout 2s --method PUT --max-rate 100 --time 30s " + u,
		"compare -c 5 -t 2s -block 2s " + u + " " + u:           "compare --clients 5 --timeout 2s --block 2s " + u + " " + u,
		"compare --qps 5/s " + u + " " + u:                      "compare --rate 5 " + u + " " + u,
	} {
		if strings.HasPrefix(line, "--config") {
			empty := filepath.Join(write(t, map[string]string{"c": "{}"}), "c")
			line, ours = strings.ReplaceAll(line, "/dev/null", empty), strings.ReplaceAll(ours, "/dev/null", empty)
		}
		got, err := understood(t, line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		want, err := understood(t, ours)
		if err != nil {
			t.Fatalf("%s: %v", ours, err)
		}
		if !reflect.DeepEqual(got.Load, want.Load) || !reflect.DeepEqual(got.Capacity, want.Capacity) || !reflect.DeepEqual(got.Compare, want.Compare) {
			t.Errorf("%s is\n%+v\n%+v\n%+v\nand not %s", line, got.Load, got.Capacity, got.Compare, ours)
		}
	}
}

func TestWhatOnlyOthersHaveIsAnErrorThatSaysWhatToWrite(t *testing.T) {
	for line, says := range map[string]string{
		"load -t12 -c400 -d30s --latency " + u: "-d30s: -d is the body here: write --duration TIME, such as 30s, or --body 30s to send that text; --latency: latencies are always printed, from the intended start of --rate: leave it out; see spillway load --help",
		// Regressions: these sent the text as a body, or as a method, or for 10 s.
		"load -c 5 -d 30 " + u:                    "-d: -d is the body here",
		"load -c 5 -d 2M " + u:                    "-d: -d is the body here",
		"load -c 5 -d={\"a\":1} " + u:             "-d={\"a\":1}: there is no such flag: write the value of -d apart",
		"load -c 5 -d=30s " + u:                   "-d=30s: -d is the body here",
		"load -rate 5 -durtion=5s " + u:           "-durtion=5s: there is no such flag",
		"load -c 5 -mode=x " + u:                  "-mode=x: there is no such flag",
		"load -rate 5 -duration=0 " + u:           "-duration=0: no duration is endless here: write --duration 24h",
		"load -rate 5 -body file.json":            "-body: write -d @FILE for the body in a file",
		"load -c 5 -t 20 " + u:                    "expected duration",
		"load -c 5 -T text/html " + u:             "-T: write -H 'Content-Type: TYPE'",
		"load -rate 5 -targets=t.txt":             "-targets=t.txt: write < FILE",
		"load -n 5 -k -p post.txt " + u:           "-k: write --insecure to accept any certificate (bombardier); connections are kept alive anyway (ab); -p: write -d @FILE",
		"load -rate 20/parsec " + u:               `--rate: "20/parsec" is no rate: want a number a second such as 20, or 20/s or 1200/m`,
		"capacity -c 50 " + u:                     "-c: only spillway load has --clients; see spillway capacity --help",
		"compare -d 5s " + u + " " + u:            "-d: -d is the body here",
		"load --no-such-flag " + u:                "unknown flag --no-such-flag",
		"load -c 5 --latency -- " + u + " --name": "--latency: ",
	} {
		if _, err := understood(t, line); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v\nwant %s", line, err, says)
		}
	}
	if code, stdout, stderr := command(t, "load", "-t2", "--latency", "--help"); code != 0 || !strings.Contains(stdout, "Lines of hey") {
		t.Errorf("asked for help: exit code %d, %s", code, stderr)
	}
}

func TestEveryExplanationCanBeSeen(t *testing.T) {
	cli := commandLine{Lab: newLabCmd(nil)}
	model := kong.Must(&cli, kong.Resolvers(experiment.Sizes())).Model.Node
	load := flagsOf(model, "load")
	for name := range instead {
		if f := load[name]; f != nil {
			t.Errorf("%s is a flag of spillway load: --%s", name, f.Name)
		}
	}
}

func TestARateIsWrittenInSeveralWays(t *testing.T) {
	for text, want := range map[string]float64{
		"20": 20, "20/s": 20, "1200/m": 20, "72000/h": 20, "50/1s": 50, "50/2s": 25, "1/100ms": 10, "0.5": 0.5, "-1": -1, "1e3/s": 1000,
	} {
		if got, err := parseRate(text); err != nil || got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s is %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "/s", "20/", "20/0s", "20/x", "20/-1s", "20 /s", "s", "20s"} {
		if got, err := parseRate(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	file := filepath.Join(write(t, map[string]string{"c.json": `{"load": {"rate": 1000, "requests": 3}}`}), "c.json")
	if code, stdout, stderr := command(t, "--config", file, "load", server.URL); code != 0 || !strings.Contains(stdout, "3 requests") {
		t.Errorf("a number in a file: %d, %s", code, stderr)
	}
	t.Setenv("SPILLWAY_LOAD_RATE", "60000/m")
	if code, stdout, stderr := command(t, "load", "-n", "4", server.URL); code != 0 || !strings.Contains(stdout, "4 requests") {
		t.Errorf("a rate a minute in the environment: %d, %s", code, stderr)
	}
}

func TestHeysRateIsExplained(t *testing.T) {
	code, _, stderr := command(t, "load", "-z", "30s", "-c", "50", "-q", "10", u)
	if code != 2 || !strings.Contains(stderr, "write --rate 10 --max-in-flight 50; hey's -q is for each worker, so write --rate 500") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// commandWith is command with something on standard input.
func commandWith(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = runWith(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func TestStandardInputIsTheBodyOrTheTargets(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		seen = append(seen, r.Method+" "+r.URL.Path+" "+r.Header.Get("X-A")+" "+string(body))
		mu.Unlock()
	}))
	defer server.Close()
	dir := write(t, map[string]string{"body": "text"})
	list := "GET " + server.URL + "/a\nX-A: b\n\nPUT " + server.URL + "/c\n@" + filepath.Join(dir, "body") + "\n"
	for _, c := range []struct {
		stdin string
		args  []string
		want  []string
	}{
		{"piped", []string{"load", "-c", "1", "-n", "1", "-d", "@-", server.URL}, []string{"POST /  piped"}},
		{"", []string{"load", "-c", "1", "-n", "1", "-d", "@" + filepath.Join(dir, "body"), server.URL}, []string{"POST /  text"}},
		{list, []string{"load", "-c", "1", "-n", "3"}, []string{"GET /a b ", "PUT /c  text", "GET /a b "}},
		{list, []string{"load", "-c", "1", "-n", "2", "-H", "X-A: all", "-"}, []string{"GET /a b ", "PUT /c all text"}},
	} {
		seen = nil
		code, stdout, stderr := commandWith(t, c.stdin, c.args...)
		if code != 0 || !slices.Equal(seen, c.want) {
			t.Errorf("%v: exit code %d, %q arrived, want %q: %s", c.args, code, seen, c.want, stderr)
		}
		if c.stdin == list && !strings.HasPrefix(stdout, "2 targets, the first of which is "+server.URL+"/a\n") {
			t.Error(stdout)
		}
	}
	for stdin, says := range map[string]string{
		"nonsense\n":                 "the targets on standard input: line 1 is",
		"GET http://127.0.0.1:1/\n":  "is the server running?",
		"GET http://a/\n@/no/such/f": "line 2: the body",
	} {
		if code, _, stderr := commandWith(t, stdin, "load", "-c", "1", "-n", "1"); code != 2 || !strings.Contains(stderr, says) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: exit code %d, %s", stdin, code, stderr)
		}
	}
	if code, _, stderr := commandWith(t, list, "load", "-c", "1", "-X", "PUT"); code != 2 || !strings.Contains(stderr, "leave out the URL, --method") {
		t.Errorf("a method beside targets: exit code %d, %s", code, stderr)
	}
}

func TestRedirectsAreFollowedIfAsked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusMovedPermanently)
		}
	}))
	defer server.Close()
	args := []string{"load", "-c", "1", "-n", "2", "-e", "ok>=100%", server.URL + "/old"}
	if code, stdout, _ := command(t, args...); code != 1 || !strings.Contains(stdout, "first error: status 301 Moved Permanently: a redirect that was not followed") {
		t.Errorf("unasked: exit code %d, %s", code, stdout)
	}
	if code, stdout, stderr := command(t, append(args, "--follow")...); code != 0 {
		t.Errorf("asked: exit code %d, %s%s", code, stdout, stderr)
	}
}

// The help and the page show lines of others beside ours. Ours must be understood, and no flag in
// theirs may be unknown.
func TestTheLinesInTheHelpAndOnThePageAreUnderstood(t *testing.T) {
	page, err := os.ReadFile("../../docs/lab/load.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile(`'[^']*'`)
	one := func(line string) string { // a text in quotes is one word
		return quoted.ReplaceAllStringFunc(line, func(text string) string { return strings.ReplaceAll(text, " ", "") })
	}
	line := regexp.MustCompile("(?m)(?:\\| |`|^  )(hey|wrk2?|vegeta attack|k6 run|ab|bombardier|oha|spillway load)( -.*?)(?:  |`| [<>] | \\||$)")
	ours, theirs := 0, 0
	for _, found := range line.FindAllStringSubmatch((&loadCmd{}).Help()+string(page), -1) {
		_, err := understood(t, "load"+one(found[2]))
		if found[1] == "spillway load" {
			ours++
			if err != nil {
				t.Errorf("%s: %v", found[0], err)
			}
			continue
		}
		theirs++
		if err != nil && !strings.Contains(err.Error(), "; see spillway load --help") {
			t.Errorf("%s: %v", found[0], err)
		}
	}
	if ours < 25 || theirs < 12 {
		t.Errorf("%d lines of ours and %d of others", ours, theirs)
	}
}

// Regression: the header of a result showed the password of the URL.
func TestResultsShowNoPassword(t *testing.T) {
	for address, shown := range map[string]string{
		"http://user:secret@h:80/a?b=c@d":  "http://user:xxxxx@h:80/a?b=c@d",
		"https://user:s@cret@h":            "https://user:xxxxx@h",
		"http://user@h/a:b@c":              "http://user@h/a:b@c",
		"http://h:80/{{.id}}?next=a:b@c#d": "http://h:80/{{.id}}?next=a:b@c#d",
		"h":                                "h",
	} {
		if got := withoutPassword(address); got != shown {
			t.Errorf("%s is shown as %s, want %s", address, got, shown)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	address := strings.Replace(server.URL, "://", "://user:secret@", 1)
	for _, line := range [][]string{{"load", "-c", "1", "-n", "1", address}, {"load", "-c", "1", "-n", "1", "--json", address}} {
		if code, stdout, stderr := command(t, line...); code != 0 || strings.Contains(stdout+stderr, "secret") {
			t.Errorf("%v: %d\n%s%s", line, code, stdout, stderr)
		}
	}
}

func TestTheBodyAndTheTargetsNeedStandardInputEach(t *testing.T) {
	var out, errs bytes.Buffer
	code := runWith(t.Context(), []string{"load", "-c", "1", "-n", "1", "-d", "@-"}, strings.NewReader("POST http://localhost:1/"), &out, &errs)
	if code != 2 || !strings.Contains(errs.String(), "cannot both come from standard input") {
		t.Errorf("%d: %s", code, errs.String())
	}
}
