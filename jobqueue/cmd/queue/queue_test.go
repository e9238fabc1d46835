package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
)

func TestMain(m *testing.M) {
	for _, v := range os.Environ() { // environment variables of flags would change each test
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "SPILLWAY_QUEUE_") {
			_ = os.Unsetenv(name)
		}
	}
	_ = os.Setenv("SPILLWAY_QUEUE_WAIT", "1m") // on a busy disk an answer may take longer than the default
	os.Exit(m.Run())
}

// command runs the command and checks its exit code.
func command(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	if got := run(t.Context(), args, &out, &err); got != code {
		t.Fatalf("%q: exit code %d, want %d\n%s%s", args, got, code, out.String(), err.String())
	}
	return out.String(), err.String()
}

func TestBadInputSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct{ args, says string }{
		{"inspect", "--url or --dir"},
		{"inspect --url nats://localhost:1 --dir " + dir, "not both"},
		{"inspect --url localhost", "nats://host:port"},
		{"inspect --dir " + dir + "/none", "there is no folder"},
		{"inspect --dir " + dir + " --creds x", "--creds is for --url"},
		{"inspect --dir " + dir + " --wait=0s", "above zero"},
		{"inspect --dir " + dir, `there is no queue "jobs"`},
		{"inspect --dir " + dir + " --name a.b", "cannot be the name"},
		{"inspekt", "inspect"},
		{"dead --url nats://localhost:1 --limit 0", "above zero"},
		{"dead --url nats://localhost:1 --payload", "needs --json"},
		{"retry --url nats://localhost:1", "--all"},
		{"retry --url nats://localhost:1 --all 7", "--all"},
		{"retry --url nats://localhost:1 seven", "seven"},
		{"purge everything --url nats://localhost:1 --yes", "waiting"},
	} {
		if _, said := command(t, 2, strings.Fields(c.args)...); !strings.Contains(said, c.says) || strings.Count(said, "\n") != 1 {
			t.Errorf("%s: %q does not say %q", c.args, said, c.says)
		}
	}
}

func TestHelpTeaches(t *testing.T) {
	for _, args := range [][]string{nil, {"queue"}, {"--help"}, {"queue", "--help"}} {
		if out, _ := command(t, 0, args...); !strings.Contains(out, "spillway queue retry --all") || !strings.Contains(out, "Exit codes") {
			t.Errorf("%q: %s", args, out)
		}
	}
}

func TestAnEngineThatIsAwayIsAFailureWithoutPasswords(t *testing.T) {
	_, said := command(t, 1, "inspect", "--url", "nats://me:secret@127.0.0.1:1", "--wait", "100ms")
	if strings.Contains(said, "secret") || !strings.Contains(said, "connecting") {
		t.Error(said)
	}
}

func TestCtrlCIs130(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, dir := filled(t)
	var out, err bytes.Buffer
	if code := run(ctx, []string{"inspect", "--dir", dir}, &out, &err); code != 130 {
		t.Errorf("exit code %d: %s", code, err.String())
	}
}

// filled makes a queue with two dead letters, two jobs that wait and one that is delayed,
// and stops its server. It returns the folder.
func filled(t *testing.T) (server func() *embedded.Server, dir string) {
	t.Helper()
	dir = t.TempDir()
	server = func() *embedded.Server {
		s, err := embedded.Start(embedded.Config{Dir: dir, Listen: "127.0.0.1:0", NoSync: true})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := server()
	defer s.Close(context.Background())
	open := func() jobqueue.Queue {
		q, err := jetstream.Open(t.Context(), jetstream.Config{Server: s, Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return q
	}
	q := open()
	put := func(job jobqueue.Job) {
		if _, err := q.Enqueue(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	put(jobqueue.Job{Key: "a", Payload: []byte("confidential")})
	put(jobqueue.Job{Key: "b\x1b[2J", Priority: spillway.Low})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- q.Work(ctx, func(context.Context, *jobqueue.Delivery) error { return jobqueue.Dead("no such\npatient") })
	}()
	await.True(t, "two dead letters, and no job in flight", func() bool {
		stats, err := q.Stats(t.Context())
		if err != nil {
			t.Fatalf("%+v, %v", stats, err)
		}
		return stats.Dead == 2 && stats.InFlight == 0
	})
	stop()
	<-ended
	_ = q.Close() // ends the workers' requests at the engine
	q = open()
	defer q.Close()
	put(jobqueue.Job{Key: "c", Priority: spillway.High})
	put(jobqueue.Job{Key: "d"})
	return server, dir
}

func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func TestAQueueInAFolderIsPutRight(t *testing.T) {
	t.Parallel()
	began := time.Now()
	_, dir := filled(t)
	putRight(t, began, "--dir", dir)
}

// Although no process used the folder, a delayed job was once counted as in flight: the engine
// counts a slot that a worker gave back as in use.
func TestNothingIsInFlightInAFolderThatNoProcessUses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := embedded.Start(embedded.Config{Dir: dir, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	q, err := jetstream.Open(t.Context(), jetstream.Config{Server: s, MaxInFlight: 1, Wait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range []jobqueue.Job{{Key: "later", Delay: time.Hour}, {Key: "now"}} {
		if _, err := q.Enqueue(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	_ = q.Work(ctx, func(context.Context, *jobqueue.Delivery) error { stop(); return nil }) // takes the delayed job once, too
	_ = q.Close()
	_ = s.Close(context.Background())
	c := decode[counts](t, first(command(t, 0, "inspect", "--dir", dir, "--json")))
	if c.InFlight != 0 || c.Delayed != 1 || c.Priorities[spillway.Normal].InFlight != 0 || c.Priorities[spillway.Normal].Delayed != 1 {
		t.Errorf("%+v", c)
	}
	if text := first(command(t, 0, "inspect", "--dir", dir)); !strings.Contains(text, "all       0         1           0") {
		t.Error(text)
	}
}

func first(stdout, _ string) string { return stdout }

func TestAQueueBehindAURLIsPutRight(t *testing.T) {
	began := time.Now()
	server, dir := filled(t)
	s := server()
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	if _, said := command(t, 1, "inspect", "--dir", dir); !strings.Contains(said, "in use") {
		t.Errorf("the folder is in use: %s", said)
	}
	t.Setenv("SPILLWAY_QUEUE_URL", s.URL())
	putRight(t, began)
	if _, said := command(t, 2, "inspect", "--name", "other"); !strings.Contains(said, "there is no queue") {
		t.Error(said)
	}
}

// putRight uses every command on a queue that was filled after began.
func putRight(t *testing.T, began time.Time, place ...string) {
	t.Helper()
	on := func(code int, args ...string) string {
		t.Helper()
		out, said := command(t, code, append(args, place...)...)
		return out + said
	}
	var c counts
	await.True(t, "two jobs are ready", func() bool { // counted a moment after the acknowledgement
		c = decode[counts](t, on(0, "inspect", "--json"))
		return c.Ready == 2
	})
	now := time.Now()
	if c.Dead != 2 || c.Priorities[spillway.High].Ready != 1 || c.InFlight != 0 || c.Oldest == nil || c.Oldest.Before(began) || c.Oldest.After(now) {
		t.Errorf("%+v", c)
	}
	if text := on(0, "inspect"); !strings.Contains(text, "2 dead letters: see spillway queue dead") || !strings.Contains(text, "high") || !strings.Contains(text, "the oldest") {
		t.Error(text)
	}
	text := on(0, "dead")
	if strings.Contains(text, "\x1b") || strings.Contains(text, "confidential") || !strings.Contains(text, `no such\npatient`) || strings.Count(text, "\n") != 3 {
		t.Error(text)
	}
	if text := on(0, "dead", "--limit", "1"); !strings.Contains(text, "only 1") {
		t.Error(text)
	}
	dead := decode[[]letter](t, on(0, "dead", "--json"))
	if len(dead) != 2 || dead[0].Payload != nil || dead[0].Attempts != 1 {
		t.Fatalf("%+v", dead)
	}
	payloads := decode[[]letter](t, on(0, "dead", "--json", "--payload"))
	if text := string(payloads[0].Payload) + string(payloads[1].Payload); text != "confidential" {
		t.Errorf("payloads %q", text)
	}
	if text := on(1, "retry", strconv.FormatUint(dead[0].ID, 10), "987654"); !strings.Contains(text, "1 retried") || !strings.Contains(text, "987654") {
		t.Error(text)
	}
	if text := on(0, "retry", "--all"); text != "1 retried\n" {
		t.Error(text)
	}
	await.True(t, "there are four jobs", func() bool { // as above
		text = on(2, "purge", "waiting")
		return strings.Contains(text, "4 jobs")
	})
	if !strings.Contains(text, "--yes") {
		t.Error(text)
	}
	if got := decode[map[string]int](t, on(0, "purge", "waiting", "--yes", "--json")); got["removed"] != 4 {
		t.Errorf("%v", got)
	}
	if text := on(0, "purge", "dead", "--yes"); text != "0 removed\n" {
		t.Error(text)
	}
	if text := on(0, "dead", "--json"); text != "[]\n" {
		t.Error(text)
	}
	if text := on(0, "inspect"); strings.Contains(text, "the oldest") {
		t.Error(text)
	}
}
