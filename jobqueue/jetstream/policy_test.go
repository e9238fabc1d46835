package jetstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/internal/logtest"
	"github.com/spillway-go/spillway/jobqueue"
)

// configs returns the streams of a queue that was never opened.
func configs(q *queue) map[string]js.StreamConfig {
	return map[string]js.StreamConfig{"jobs": q.jobsConfig(), "dead": q.deadConfig(), "returns": q.returnsConfig(), "slots": q.slotsConfig()}
}

// A stream of the queue's name with another policy was used unchanged: jobs were acknowledged and
// did not run.
func TestAStreamWithAnotherPolicyIsChanged(t *testing.T) {
	server := serve(t, t.TempDir())
	client := open(t, Config{Server: server, Name: "client"}).js
	bounded := func(c *js.StreamConfig) { c.MaxMsgs, c.MaxBytes = 1, 1<<10 }
	for stream, alter := range map[string]map[string]func(*js.StreamConfig){
		"jobs": {
			"Discard":           func(c *js.StreamConfig) { c.Discard = js.DiscardOld },
			"MaxAge":            func(c *js.StreamConfig) { c.MaxAge, c.Duplicates = time.Minute, time.Minute },
			"Subjects":          func(c *js.StreamConfig) { c.Subjects = []string{"elsewhere.>"} },
			"MaxMsgSize":        func(c *js.StreamConfig) { c.MaxMsgSize = 10 },
			"MaxMsgsPerSubject": func(c *js.StreamConfig) { c.MaxMsgsPerSubject = 1 },
			"NoAck":             func(c *js.StreamConfig) { c.NoAck = true },
			"ConsumerLimits":    func(c *js.StreamConfig) { c.ConsumerLimits.InactiveThreshold = time.Minute },
			"SubjectTransform": func(c *js.StreamConfig) {
				c.SubjectTransform = &js.SubjectTransformConfig{Source: ">", Destination: "x.>"}
			},
		},
		"dead":    {"MaxMsgs": bounded, "MaxAge": func(c *js.StreamConfig) { c.MaxAge, c.Duplicates = time.Minute, time.Minute }, "AllowDirect": func(c *js.StreamConfig) { c.AllowDirect = false }},
		"returns": {"MaxMsgs": bounded, "MaxMsgsPerSubject": func(c *js.StreamConfig) { c.MaxMsgsPerSubject = 9 }},
		"slots":   {"MaxMsgs": bounded, "DiscardNewPerSubject": func(c *js.StreamConfig) { c.DiscardNewPerSubject = false }},
	} {
		for field, change := range alter {
			name := stream + field
			log := &logtest.Log{}
			cfg := Config{Server: server, Name: name, Logger: log.Logger(), MaxInFlight: 2, MaxBytes: 4 << 20}
			want := configs(&queue{cfg: cfg, names: namesOf(name)})[stream]
			altered := want
			change(&altered)
			if _, err := client.CreateStream(within(t), altered); err != nil {
				t.Fatal(name, err)
			}
			q := open(t, cfg)
			if lines := log.Lines(); len(lines) != 1 || !strings.Contains(lines[0], field) {
				t.Errorf("%s: the log says %q", name, lines)
			}
			now, err := client.Stream(within(t), want.Name)
			check(t, err)
			if again, changes, err := adapt(now.CachedInfo().Config, want); len(changes) > 0 || err != nil || !reflect.DeepEqual(again.Subjects, want.Subjects) {
				t.Errorf("%s: it still has %v, %v", name, changes, err)
			}
			enqueue(t, q, jobqueue.Job{Payload: make([]byte, 100)})
			enqueue(t, q, jobqueue.Job{Key: "dead"})
			work(t, q, func(_ context.Context, d *jobqueue.Delivery) error {
				if d.Key == "dead" {
					return jobqueue.Dead("as it says")
				}
				return nil
			})
			await.True(t, name+": all are done", func() bool { s := stats(t, q); return s.Done == 1 && s.Dead == 1 })
			_ = q.Close()
			for _, c := range configs(q) {
				lose(t, asking(client), c.Name, "")
			}
		}
	}
}

// asking is a queue that sends only the test's requests.
func asking(client js.JetStream) *queue { return &queue{js: client} }

// A field that no server can change causes an error with the field and the remedy. Nothing is left
// of the queue that was not opened.
func TestAStreamThatCannotBeChangedIsAnError(t *testing.T) {
	server := serve(t, t.TempDir())
	client := open(t, Config{Server: server, Name: "client"}).js
	for stream, alter := range map[string]map[string]func(*js.StreamConfig){
		"jobs": {
			"Storage":   func(c *js.StreamConfig) { c.Storage = js.MemoryStorage },
			"Retention": func(c *js.StreamConfig) { c.Retention = js.LimitsPolicy },
			"DenyPurge": func(c *js.StreamConfig) { c.DenyPurge = true },
		},
		"dead":    {"Storage": func(c *js.StreamConfig) { c.Storage = js.MemoryStorage }, "DenyDelete": func(c *js.StreamConfig) { c.DenyDelete = true }},
		"returns": {"Retention": func(c *js.StreamConfig) { c.Retention = js.WorkQueuePolicy }},
		"slots": {"Mirror": func(c *js.StreamConfig) {
			*c = js.StreamConfig{Name: c.Name, Mirror: &js.StreamSource{Name: "spillway-client"}}
		}},
	} {
		for field, change := range alter {
			cfg := Config{Server: server, Name: stream + field, Wait: await.Limit, MaxBytes: 4 << 20}
			all := configs(&queue{cfg: cfg, names: namesOf(cfg.Name)})
			altered := all[stream]
			change(&altered)
			if _, err := client.CreateStream(within(t), altered); err != nil {
				t.Fatal(cfg.Name, err)
			}
			_, err := Open(within(t), cfg)
			if err == nil || errors.Is(err, jobqueue.ErrUnavailable) || !strings.Contains(err.Error(), field+" of stream "+altered.Name) || !strings.Contains(err.Error(), "delete") {
				t.Errorf("%s: %v", cfg.Name, err)
			}
			for part, c := range all {
				if _, err := client.Stream(within(t), c.Name); errors.Is(err, js.ErrStreamNotFound) != (part != stream) {
					t.Errorf("%s: %s: %v", cfg.Name, part, err)
				}
			}
		}
	}
}

// A consumer with room for one request makes all other workers wait.
func TestAConsumerThatCannotBeChangedIsAnError(t *testing.T) {
	q := open(t, Config{})
	lose(t, q, q.names.jobs, "high")
	_, err := q.jobs.CreateConsumer(within(t), js.ConsumerConfig{Durable: "high", FilterSubject: q.names.ready(1), MaxWaiting: 1, AckPolicy: js.AckExplicitPolicy})
	if err == nil {
		_, err = Open(within(t), Config{Server: q.cfg.Server, Wait: await.Limit})
	}
	if err == nil || errors.Is(err, jobqueue.ErrUnavailable) || !strings.Contains(err.Error(), "consumer high") || !strings.Contains(err.Error(), "delete") {
		t.Error(err)
	}
}

// older is a server without atomic batches: it ignores their settings.
type older struct{ js.JetStream }

func (o older) CreateStream(ctx context.Context, cfg js.StreamConfig) (js.Stream, error) {
	cfg.AllowAtomicPublish = false
	return o.JetStream.CreateStream(ctx, cfg)
}

func (o older) UpdateStream(ctx context.Context, cfg js.StreamConfig) (js.Stream, error) {
	cfg.AllowAtomicPublish = false
	return o.JetStream.UpdateStream(ctx, cfg)
}

// Open passed on what the server says, or told people to delete a consumer, and left streams behind.
func TestALimitOfTheServerIsNamed(t *testing.T) {
	for _, c := range []struct {
		limits, account string
		cfg             Config
		says            string // empty: the queue opens
	}{
		{`duplicate_window: "30s"`, "", Config{Dedupe: time.Minute}, "duplicate_window"},
		{`duplicate_window: "30s"`, "", Config{Dedupe: 10 * time.Second}, ""},
		{`duplicate_window: "30s"`, "", Config{}, ""},
		{"max_ack_pending: 1000", "", Config{}, "max_ack_pending"},
		{"max_request_batch: 1", "", Config{}, ""},
		{"", "max_consumers: 3", Config{}, "max_consumers"},
		{"", "max_streams: 3", Config{}, "max_streams"},
		{"", "max_bytes_required: true", Config{}, "max_bytes_required"},
	} {
		t.Run(c.limits+c.account, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "server.conf")
			text := fmt.Sprintf(`listen: "127.0.0.1:-1"
				jetstream { store_dir: %q, limits { %s } }
				accounts { jobs { users: [{user: u, password: p}], jetstream: { max_store: 2G, %s } } }
				no_auth_user: u`, t.TempDir(), c.limits, c.account)
			check(t, os.WriteFile(file, []byte(text), 0o600))
			o, err := server.ProcessConfigFile(file)
			check(t, err)
			o.NoSigs, o.NoLog = true, true
			c.cfg.URL, c.cfg.Wait, c.cfg.MaxInFlight = node(t, o).ClientURL(), await.Limit, 4
			q, err := Open(within(t), c.cfg)
			if c.says == "" {
				check(t, err)
				defer q.Close()
				for range 8 {
					enqueue(t, q, jobqueue.Job{})
				}
				work(t, q, func(context.Context, *jobqueue.Delivery) error { return nil })
				await.True(t, "all are done", func() bool { return stats(t, q).Done == 8 })
				return
			}
			if err == nil || !strings.Contains(err.Error(), "the server's limit "+c.says) || strings.Contains(err.Error(), "delete") {
				t.Error(err)
			}
			nc, err := nats.Connect(c.cfg.URL, nats.Timeout(await.Limit))
			check(t, err)
			defer nc.Close()
			client, err := js.New(nc)
			check(t, err)
			for name := range client.StreamNames(within(t)).Name() {
				t.Errorf("%s is left", name)
			}
		})
	}
}

// The stream of a refused queue used to keep its reserved room.
func TestAQueueThatAnOldServerCannotKeepLeavesNothing(t *testing.T) {
	server := serve(t, t.TempDir())
	q := open(t, Config{Server: server, Name: "client"})
	name := namesOf("refused")
	again := &queue{cfg: Config{Server: server, Name: "refused", Wait: await.Limit, Logger: q.cfg.Logger}, names: name, nc: q.nc, js: older{q.js}}
	if err := again.prepare(within(t)); !errors.Is(err, errUnfit) || !strings.Contains(err.Error(), "2.12.1") {
		t.Errorf("an older server: %v", err)
	}
	for _, stream := range []string{name.jobs, name.dead, name.slots, name.returns} {
		if _, err := q.js.Stream(within(t), stream); !errors.Is(err, js.ErrStreamNotFound) {
			t.Errorf("%s is left: %v", stream, err)
		}
	}
}

// A process ended after it had lowered the number of slots, before it removed the other slots.
func TestSlotsAreAsManyAsTheStreamSays(t *testing.T) {
	server := serve(t, t.TempDir())
	q := open(t, Config{Server: server, MaxInFlight: 8})
	for _, want := range []int{3, 9} {
		stream, err := q.js.Stream(within(t), q.names.slots)
		check(t, err)
		cfg := stream.CachedInfo().Config
		cfg.Metadata[slotsKey] = map[int]string{3: "3", 9: "9"}[want]
		if _, err := q.js.UpdateStream(within(t), cfg); err != nil {
			t.Fatal(err)
		}
		open(t, Config{Server: server})
		if stream, err = q.js.Stream(within(t), q.names.slots); err != nil || stream.CachedInfo().State.Msgs != uint64(want) {
			t.Errorf("%d slots, want %d: %v", stream.CachedInfo().State.Msgs, want, err)
		}
	}
}

// When the metadata of the stream of slots and a slot were gone, the queue removed all other slots
// too: no job ran, and no log reported it. A number beyond all bounds was applied.
func TestASlotsStreamThatSaysNothingUsefulIsToldAgain(t *testing.T) {
	for _, says := range []string{"", "0", "-3", "many", "1000000000"} {
		server := serve(t, t.TempDir())
		var log logtest.Log
		q := open(t, Config{Server: server, MaxInFlight: 4, Logger: log.Logger()})
		stream, err := q.js.Stream(within(t), q.names.slots)
		check(t, err)
		cfg := stream.CachedInfo().Config
		if delete(cfg.Metadata, slotsKey); says != "" {
			cfg.Metadata[slotsKey] = says
		}
		if _, err := q.js.UpdateStream(within(t), cfg); err != nil {
			t.Fatal(err)
		}
		check(t, stream.Purge(within(t), js.WithPurgeSubject(q.names.slot("1"))))
		await.True(t, "there are four slots", func() bool {
			stats(t, q) // checks the slots
			info, err := stream.Info(within(t))
			return err == nil && info.State.Msgs == 4 && slotsIn(info.Config) == 4
		})
		if len(log.Lines()) == 0 {
			t.Errorf("%q: the log says nothing", says)
		}
		if again := open(t, Config{Server: server}); again.inFlight != 4 {
			t.Errorf("%q: the next process takes %d at once", says, again.inFlight)
		}
	}
}

// Somebody changes a part of a queue by hand while the queue is open. The engine reports nothing:
// jobs were acknowledged and never run, and Stats had none of them.
func TestWhatSomebodyHasChangedByHandIsRestored(t *testing.T) {
	server := serve(t, t.TempDir())
	consumer := func(change func(*js.ConsumerConfig)) func(*queue) error {
		return func(q *queue) error {
			cfg := q.ready[slices.Index(priorities[:], spillway.Normal)].CachedInfo().Config
			change(&cfg)
			_, err := q.js.UpdateConsumer(within(t), q.names.jobs, cfg)
			return err
		}
	}
	stream := func(change func(*js.StreamConfig)) func(*queue) error {
		return func(q *queue) error {
			cfg := q.jobs.CachedInfo().Config
			change(&cfg)
			_, err := q.js.UpdateStream(within(t), cfg)
			return err
		}
	}
	for name, edit := range map[string]func(*queue) error{
		"FilterSubject":      consumer(func(c *js.ConsumerConfig) { c.FilterSubject += ".none" }),
		"MaxDeliver":         consumer(func(c *js.ConsumerConfig) { c.MaxDeliver = 1 }),
		"HeadersOnly":        consumer(func(c *js.ConsumerConfig) { c.HeadersOnly = true }),
		"MaxRequestExpires":  consumer(func(c *js.ConsumerConfig) { c.MaxRequestExpires = sentryWait / 2 }),
		"MaxAckPending":      consumer(func(c *js.ConsumerConfig) { c.MaxAckPending = 1 }),
		"InactiveThreshold":  consumer(func(c *js.ConsumerConfig) { c.InactiveThreshold = time.Hour }),
		"MaxRequestMaxBytes": consumer(func(c *js.ConsumerConfig) { c.MaxRequestMaxBytes = 10 }),
		"Subjects":           stream(func(c *js.StreamConfig) { c.Subjects = append(c.Subjects, "other") }),
		"AllowAtomicPublish": stream(func(c *js.StreamConfig) { c.AllowAtomicPublish = false }),
		"MaxMsgs of dead": func(q *queue) error {
			cfg := q.dead.CachedInfo().Config
			cfg.MaxMsgs = 1
			_, err := q.js.UpdateStream(within(t), cfg)
			return err
		},
	} {
		for _, how := range []string{"Stats", "Work", "Open"} {
			var log logtest.Log
			q := open(t, Config{Server: server, Logger: log.Logger(), Policy: jobqueue.Policy{Backoff: time.Millisecond}})
			if err := edit(q); err != nil {
				t.Fatal(name, err)
			}
			for i := range 2 {
				enqueue(t, q, jobqueue.Job{Key: fmt.Sprint(name, how, i), Payload: []byte("payload")})
			}
			handle := func(_ context.Context, d *jobqueue.Delivery) error {
				switch {
				case string(d.Payload) != "payload":
					t.Errorf("%s: the payload is %q", name, d.Payload)
				case d.Attempt == 1:
					return errors.New("again")
				}
				return nil
			}
			switch how {
			case "Stats":
				stats(t, q)
			case "Work": // after a minute
				q.mendSoon()
				await.True(t, "it is restored", func() bool { return len(log.Lines()) > 0 })
			case "Open":
				q = open(t, Config{Server: server, Logger: log.Logger(), Policy: jobqueue.Policy{Backoff: time.Millisecond}})
			}
			if text := strings.Join(log.Lines(), ""); !strings.Contains(text, strings.Fields(name)[0]) || strings.Count(text, "another policy") != 1 {
				t.Errorf("%s, %s: the log says %q", name, how, text)
			}
			stop := work(t, q, handle)
			await.True(t, name+": all are done", func() bool { s := stats(t, q); return s.Done == 2 && s.Depth == jobqueue.Depth{} })
			_ = stop()
			_ = q.Close()
		}
	}
}

// The queue jobs-slots took the stream of the slots of the queue jobs for its own: jobs ran nothing from
// then on. For jobs-dead, the error advised to delete the dead letters of jobs.
func TestAQueueDoesNotTakeThePartsOfAnother(t *testing.T) {
	server := serve(t, t.TempDir())
	open(t, Config{Server: server, Name: "jobs"})
	for _, name := range []string{"jobs-dead", "jobs-slots", "jobs-returns"} {
		if _, err := Open(within(t), Config{Server: server, Name: name}); err == nil || !strings.Contains(err.Error(), "Name is") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A consumer was paused, and its jobs waited without a word.
func TestAPausedConsumerIsSaid(t *testing.T) {
	var log logtest.Log
	q := open(t, Config{Logger: log.Logger()})
	if _, err := q.js.PauseConsumer(within(t), q.names.jobs, spillway.High.String(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	q.mendSoon() // as Work does after a minute
	await.True(t, "it is said", func() bool { return len(log.Lines()) > 0 })
	if text := strings.Join(log.Lines(), ""); !strings.Contains(text, "consumer=high") || strings.Count(text, "paused") != 1 {
		t.Errorf("the log says %q", text)
	}
	if c, err := q.js.Consumer(within(t), q.names.jobs, spillway.High.String()); err != nil || !c.CachedInfo().Paused {
		t.Errorf("resumed: %v", err)
	}
}
