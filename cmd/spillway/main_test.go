package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/results"
)

// asCommand makes the test binary run as the command.
const asCommand = "SPILLWAY_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if code, ok := contestant.Main(roles()); ok {
		os.Exit(code)
	}
	if os.Getenv(asCommand) != "" {
		main()
	}
	// The race detector makes every process sleep a second at its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(tinyDir)
	os.Exit(code)
}

// tinyDir holds the results of tinyRun.
var tinyDir string

// tinyRun is a tiny session that several tests look at. Each takes a copy.
var tinyRun = sync.OnceValue(func() (ran struct {
	code           int
	stdout, stderr string
}) {
	var out, errs bytes.Buffer
	var err error
	if tinyDir, err = os.MkdirTemp("", "spillway-tiny"); err != nil {
		panic(err)
	}
	ran.code = run(context.Background(), tiny(filepath.Join(tinyDir, "out"), "--json"), &out, &errs)
	ran.stdout, ran.stderr = out.String(), errs.String()
	return ran
})

// copyOfTinyRun fills the folder.
func copyOfTinyRun(t *testing.T, dir string) {
	t.Helper()
	if ran := tinyRun(); ran.code != 0 {
		t.Fatalf("exit code %d\n%s", ran.code, ran.stderr)
	}
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(tinyDir, "out"))); err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = runWith(t.Context(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

// tiny is an experiment whose contestants need no program of their own and take no time: the test
// is that all parts are present.
func tiny(dir string, more ...string) []string {
	return append([]string{"lab", "reuse", "--quick", "--time", "1ms", "--rounds", "3", "--contestant", "sync.Pool", "--size", "1024", "--users", "5", "--bursts", "2", "--on", "10ms", "--off", "1ms", "--seed", "5", "--again", "0", "--out", dir}, more...)
}

func TestBadInputIsOneLineAndExitCode2(t *testing.T) {
	soak.WithoutRace(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	closedURL := "http://" + closed.Addr().String()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	tmp := t.TempDir()
	file := filepath.Join(tmp, "file")
	unknownKey := filepath.Join(tmp, "unknown.json")
	notANumber := filepath.Join(tmp, "number.json")
	used := filepath.Join(tmp, "used")
	mix, badMix, table := filepath.Join(tmp, "mix.json"), filepath.Join(tmp, "bad.json"), filepath.Join(tmp, "table.csv")
	if err := errors.Join(os.WriteFile(mix, []byte(`[{"path": "/x"}]`), 0o600), os.WriteFile(badMix, []byte(`[{"priority": "urgent"}]`), 0o600),
		os.WriteFile(table, []byte("id\nP1\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.WriteFile(unknownKey, []byte(`{"lab": {"repeat": 5}}`), 0o600),
		os.WriteFile(notANumber, []byte(`{"lab": {"H": {"seed": "many"}}}`), 0o600),
		os.Mkdir(used, 0o700), os.WriteFile(filepath.Join(used, results.RunsFile), []byte("{}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(tmp, "out")

	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"no command":               {nil, "expected one of"},
		"unknown command":          {[]string{"lob"}, "unexpected argument lob"},
		"no command but a URL":     {[]string{"http://localhost:1/"}, "write load before the flags and the URL"},
		"unknown flag":             {[]string{"lab", "reuse", "--repeat", "3"}, "did you mean"},
		"no time":                  {[]string{"lab", "--budget", "0s", "--out", out}, "budget is 0s"},
		"unknown experiment":       {[]string{"lab", "Q", "--out", out}, `unknown experiment "Q"`},
		"named twice":              {[]string{"lab", "H", "h", "--out", out}, "named twice"},
		"no session to resume":     {[]string{"lab", "--resume", out}, "no session of several experiments"},
		"resumed with others":      {[]string{"lab", "all", "--resume", used, "H"}, "leave out H"},
		"resumed with a seed":      {[]string{"lab", "--resume", used, "--seed", "3"}, "leave out --seed"},
		"too little time":          {[]string{"lab", "--budget", "1s", "--out", out}, "no experiment fits into a budget of 1s; H: it takes "},
		"unknown contestant":       {tiny(out, "--contestant", "magic"), "fresh, sync.Pool"},
		"both sizes":               {tiny(out, "--full"), "can't be used together"},
		"not a number":             {tiny(out, "--users", "many"), "many"},
		"folder below a file":      {tiny(filepath.Join(file, "out")), "cannot make the results folder"},
		"folder with results":      {tiny(used), "choose another folder"},
		"resumed with a setting":   {[]string{"lab", "reuse", "--resume", used, "--users", "3"}, "leave out --users"},
		"resumed with a size":      {[]string{"lab", "reuse", "--resume", used, "--quick"}, "leave out --quick"},
		"a limit's help":           {tiny(out, "--repeats", "1001"), "want 1 to 1000; see spillway lab reuse --help"},
		"nothing to resume":        {[]string{"lab", "reuse", "--resume", out}, "is not a results folder"},
		"demo too short":           {[]string{"demo", "--duration", "1ms"}, "duration is 1ms"},
		"judge nothing":            {[]string{"lab", "judge", out}, "is not a results folder"},
		"no scenario":              {[]string{"sim"}, "say which scenario"},
		"unknown scenario":         {[]string{"sim", "retry-strom"}, "built in are burst"},
		"a broken scenario":        {[]string{"sim", unknownKey, "--out", out}, `line 1: unknown field "lab"`},
		"a page below a file":      {[]string{"sim", "burst", "--out", filepath.Join(file, "out.html")}, "make the folder"},
		"unknown shell":            {[]string{"completion", "tcsh"}, "bash"},
		"no trials":                {[]string{"lab", "selftest", "--trials", "0"}, "trials is 0"},
		"no URL":                   {[]string{"load", "--rate", "1"}, "<url>"},
		"not HTTP":                 {[]string{"load", "--rate", "1", "ftp://localhost/"}, "want http://"},
		"no server there":          {[]string{"load", "--rate", "1", closedURL}, "is the server running?"},
		"rate and clients":         {[]string{"load", "--rate", "1", "--clients", "1", server.URL}, "exclude each other"},
		"neither":                  {[]string{"load", server.URL}, "either --rate"},
		"negative rate":            {[]string{"load", "--rate=-1", server.URL}, "cannot be negative"},
		"unreadable expectation":   {[]string{"load", "--clients", "1", "-e", "p99", server.URL}, "no comparison"},
		"absent body":              {[]string{"load", "--clients", "1", "-d", "@" + out, server.URL}, "the body"},
		"a bad profile":            {[]string{"load", "--profile", "100", server.URL}, "want RATE:TIME"},
		"a profile, and requests":  {[]string{"load", "--profile", "100:1s", "--requests", "1", server.URL}, "--requests goes with"},
		"a trace without times":    {[]string{"load", "--trace", badMix, server.URL}, "seconds such as 12.5"},
		"unknown placeholder":      {[]string{"load", "--clients", "1", "--data", table, server.URL + "/{{.name}}"}, `no column "name": want {{n}}, {{.id}}`},
		"data of another kind":     {[]string{"load", "--clients", "1", "--data", mix, server.URL}, ".csv or .jsonl"},
		"a mix that is none":       {[]string{"load", "--clients", "1", "--mix", unknownKey, server.URL}, "no list of requests"},
		"a mix of no priority":     {[]string{"load", "--clients", "1", "--mix", badMix, server.URL}, "request 1: spillway: unknown priority"},
		"no such class":            {[]string{"load", "--clients", "1", "--mix", mix, "-e", "critical:p99<1s", server.URL}, `no class "critical": want one of --mix: /x`},
		"two formats":              {[]string{"load", "--clients", "1", "--json", "--format", "prometheus", server.URL}, "either --json"},
		"csv below a file":         {[]string{"load", "--clients", "1", "--csv", filepath.Join(file, "out"), server.URL}, "--csv"},
		"csv, and a bad rate":      {[]string{"load", "--rate", "1e12", "--csv", out, server.URL}, "a rate of 1e+12"},
		"no interval":              {[]string{"load", "--rate", "1", "--interval", "0s", server.URL}, "interval is 0s"},
		"absent configuration":     {[]string{"--config", out, "version"}, "configuration file"},
		"unknown configuration":    {[]string{"--config", unknownKey, "version"}, `unknown key "lab.repeat"`},
		"configured, not a number": {[]string{"--config", notANumber, "lab", "H", "--out", out}, "many"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := command(t, test.args...)
			if code != 2 {
				t.Errorf("exit code %d, want 2", code)
			}
			if stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "spillway: ") {
				t.Errorf("want one line on standard error alone; stdout %q, stderr %q", stdout, stderr)
			}
			if !strings.Contains(stderr, test.says) {
				t.Errorf("%q does not say %q", stderr, test.says)
			}
			if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s was made", out)
			}
		})
	}
}

// Some editors write a byte order mark, which was an error of the first character.
func TestAByteOrderMarkIsNoPartOfAConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "marked.json")
	if err := os.WriteFile(file, []byte("\ufeff{\"lab\": {\"H\": {\"seed\": 5}}}\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := command(t, "--config", file, "version"); code != 0 {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

func TestALabRunFromCellToVerdictAndBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	copyOfTinyRun(t, dir)
	stdout, stderr := tinyRun().stdout, tinyRun().stderr
	if !strings.Contains(stderr, "this takes about") {
		t.Error(stderr)
	}
	var printed results.Results
	if err := json.Unmarshal([]byte(stdout), &printed); err != nil {
		t.Fatalf("standard output is not results.json: %v", err)
	}
	stored, runs, err := results.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if stored.Schema != results.Schema || stored.Experiment != "reuse" || stored.Seed != 5 || stored.Scaled == "" || stored.Partial != "" ||
		stored.Machine.CPUs == 0 || stored.Command[0] != "spillway" || stored.Revision == "" || stored.Repeats != 7 || len(runs) == 0 {
		t.Errorf("results: %+v", stored)
	}
	same := func(a, b []results.Claim) bool { // figures that there are not are not equal to themselves
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		return bytes.Equal(x, y)
	}
	if len(printed.Claims) == 0 || !same(printed.Claims, stored.Claims) {
		t.Error("the printed claims are not the stored ones")
	}
	for _, c := range stored.Claims {
		if c.Title == "" || c.Verdict == "" || c.Why == "" || len(c.Answers) == 0 {
			t.Errorf("claim %+v", c)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, results.ReportFile))
	if err != nil || len(page) == 0 {
		t.Errorf("the report: %d bytes, %v", len(page), err)
	}

	// The verdicts come from the runs: the same runs give the same verdicts.
	if code, _, stderr := command(t, "lab", "judge", dir); code != 0 || strings.Contains(stderr, " now") {
		t.Fatalf("judge: exit code %d, %s", code, stderr)
	}
	again, _, err := results.Read(dir)
	if err != nil || !same(again.Claims, stored.Claims) {
		t.Errorf("judged again, the claims differ (%v)", err)
	}
	curve := filepath.Join(t.TempDir(), "curve.svg")
	if code, _, stderr := command(t, "lab", "judge", "--curve", curve, dir); code != 2 || !strings.Contains(stderr, "there is no curve") {
		t.Errorf("a curve without loads: exit code %d, %s", code, stderr)
	}
	if _, err := os.Stat(curve); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s: %v", curve, err)
	}
	killed := stored
	killed.Ended, killed.Claims = time.Time{}, nil
	if err := results.WriteResults(dir, killed); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := command(t, "lab", "judge", dir); code != 0 {
		t.Fatalf("judge of a killed session: exit code %d, %s", code, stderr)
	}
	if alone, _, err := results.Read(dir); err != nil || !same(alone.Claims, stored.Claims) || !strings.Contains(alone.Partial, "killed") {
		t.Errorf("of a killed session: partial %q, %v", alone.Partial, err)
	}

	// And the session goes on.
	if code, stdout, stderr := command(t, "lab", "reuse", "--resume", dir, "--repeats", "8", "--json"); code != 0 || !strings.Contains(stdout, `"looks": 1`) {
		t.Errorf("resumed: exit code %d, %s", code, stderr)
	}
}

func TestCtrlCLeavesAPartialReportThatSaysSo(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "out")
	cmd := exec.CommandContext(t.Context(), os.Args[0], tiny(dir, "--repeats", "1000")...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	var said bytes.Buffer
	lines := bufio.NewReader(stderr)
	for !strings.Contains(said.String(), "repeat 2 of 1000") {
		line, err := lines.ReadString('\n')
		if said.WriteString(line); err != nil {
			t.Fatal(err, said.String())
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_, _ = lines.WriteTo(&said)
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, want 130\n%s", code, said.String())
	}
	res, runs, err := results.Read(dir)
	if err != nil || len(runs) == 0 || !strings.Contains(res.Partial, "interrupted after") || len(res.Claims) == 0 {
		t.Errorf("%d runs, partial %q, %d claims, %v", len(runs), res.Partial, len(res.Claims), err)
	}
	if _, err := os.Stat(filepath.Join(dir, results.ReportFile)); err != nil {
		t.Error(err)
	}
	for what, text := range map[string]string{"summary": stdout.String(), "error": said.String()} {
		if !strings.Contains(text, "interrupted") {
			t.Errorf("the %s does not say that it was interrupted:\n%s", what, text)
		}
	}
}

func TestLoadKeepsOutcomesApartAndExpectations(t *testing.T) {
	var n int
	turns := make(chan int, 1)
	turns <- n
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := <-turns
		turns <- n + 1
		switch {
		case r.Method != http.MethodPost || r.Header.Get("X-Test") != "a: b":
			w.WriteHeader(http.StatusBadRequest)
		case n%4 == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case n%4 == 2:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	args := []string{"load", "--clients", "4", "--requests", "40", "-d", "body", "-H", "X-Test: a: b", "--json"}
	code, stdout, stderr := command(t, append(args, "-e", "max<30s", "-e", "error<30%", server.URL)...)
	var got loadSummary
	if err := json.Unmarshal([]byte(stdout), &got); code != 0 || err != nil {
		t.Fatalf("exit code %d, %v, %s", code, err, stderr)
	}
	counts := map[string]uint64{}
	for _, o := range got.Outcomes {
		counts[o.Kind] = o.Count
	}
	if want := map[string]uint64{"ok": 20, "rejected": 10, "error": 10, "timeout": 0}; !reflect.DeepEqual(counts, want) || got.Offered != 40 {
		t.Errorf("%d offered, %v, want %v", got.Offered, counts, want)
	}
	code, stdout, stderr = command(t, append(args, "-e", "error<1%", server.URL)...)
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 1 || !strings.Contains(stderr, "1 of 1 expectations not kept") {
		t.Errorf("missed expectation: exit code %d, %q, %v", code, stderr, err)
	}
	code, stdout, _ = command(t, "load", "--rate", "200", "--requests", "20", "-X", "post", "-H", "X-Test: a: b", server.URL)
	if code != 0 || !strings.Contains(stdout, "20 requests") || !strings.Contains(stdout, "send lag") {
		t.Errorf("open loop: exit code %d\n%s", code, stdout)
	}
}

// The example of the help has a token in the environment and another header on the command
// line, which took the token away.
func TestTheHeaderOfTheEnvironmentIsSentBesideOthers(t *testing.T) {
	got := make(chan http.Header, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header.Clone() }))
	defer server.Close()
	t.Setenv("SPILLWAY_LOAD_HEADER", "Authorization: Bearer x")
	for header, want := range map[string]string{"X-Test: y": "[Bearer x]", "authorization: Bearer z": "[Bearer z]"} {
		if code, _, stderr := command(t, "load", "--clients", "1", "--requests", "1", "-H", header, server.URL); code != 0 {
			t.Fatal(stderr)
		}
		if h := <-got; fmt.Sprint(h["Authorization"]) != want {
			t.Errorf("%s: %v", header, h)
		}
	}
}

func TestCtrlCInALoadRunPrintsWhatWasMeasured(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	turns := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		turns <- struct{}{}
		if seen++; seen == 20 {
			cancel()
		}
		<-turns
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"load", "--clients", "2", "--duration", "1m", server.URL}, &stdout, &stderr)
	if code != 130 || !strings.Contains(stdout.String(), "partial: interrupted") || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d\n%s\n%s", code, stdout.String(), stderr.String())
	}
}

func TestVersionAndSelftest(t *testing.T) {
	if code, stdout, _ := command(t, "version"); code != 0 || !strings.HasPrefix(stdout, "spillway ") {
		t.Errorf("exit code %d, %q", code, stdout)
	}
	code, stdout, stderr := command(t, "lab", "selftest", "--trials", "40", "--json")
	if code != 0 || !strings.Contains(stdout, `"judge"`) {
		t.Errorf("exit code %d, %s %s", code, stdout, stderr)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// It used to print nothing and report success.
func TestAFullDiskIsAFailure(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"demo", "--duration", "500ms"}} {
		var errs bytes.Buffer
		if code := run(t.Context(), args, full{}, &errs); code != 1 || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
}
