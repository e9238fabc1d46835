package clusterlimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/clusterlimit/internal/budget"
)

// connect opens a connection that detects failures soon and reconnects for ever.
func connect(ctx context.Context, cfg Config) (*nats.Conn, error) {
	timeout := nats.DefaultTimeout
	if end, ok := ctx.Deadline(); ok {
		timeout = min(timeout, max(time.Until(end), time.Millisecond))
	}
	conn, err := nats.Connect(cfg.URL, slices.Concat([]nats.Option{
		nats.Name("spillway budget " + cfg.Name), nats.Timeout(timeout), nats.PingInterval(cfg.Lease), nats.MaxPingsOutstanding(2),
		nats.ReconnectWait(cfg.Lease / renewals), nats.ReconnectJitter(cfg.Lease/renewals, cfg.Lease/renewals),
	}, cfg.Options, []nats.Option{nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(), nats.ReconnectBufSize(-1)})...)
	if err != nil {
		return nil, fmt.Errorf("no engine at the URL (%w): start one with nats-server -js, or correct Config.URL", err)
	}
	return conn, nil
}

// store is the part of a key/value bucket that members use.
type store interface {
	Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error)
	Create(ctx context.Context, key string, value []byte) (uint64, error)
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
}

// keys is a bucket as a store: versions of the client library differ in the signature of Create.
type keys struct{ jetstream.KeyValue }

func (k keys) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	return k.KeyValue.Create(ctx, key, value)
}

// Codes of errors of the engine's API.
const (
	codeNotNow        = 10008 // no leader, or too busy
	codeStreams       = 10027
	codeBytesRequired = 10113
	codeOtherRevision = 10164 // also 10071, which the client library knows
)

// bucketName is the name of the key/value bucket with all budgets of an account.
const bucketName = "spillway"

// bucket opens the bucket, and creates a missing bucket. It is made as the client library makes one,
// but for the window of duplicates, which nothing needs: the engine selects one within its limit.
func bucket(ctx context.Context, conn *nats.Conn) (store, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	kv, err := js.KeyValue(ctx, bucketName)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{
			Name: "KV_" + bucketName, Description: "budgets shared by replicas", Subjects: []string{"$KV." + bucketName + ".>"}, Storage: jetstream.FileStorage,
			MaxMsgsPerSubject: 1, MaxBytes: -1, MaxMsgs: -1, MaxMsgSize: -1, MaxConsumers: -1, Replicas: 1, Discard: jetstream.DiscardNew,
			AllowRollup: true, DenyDelete: true, AllowDirect: true,
		})
		if err == nil || errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another member was faster
			kv, err = js.KeyValue(ctx, bucketName)
		}
	}
	api, _ := errors.AsType[*jetstream.APIError](err)
	switch {
	case noJetStream(err):
		return nil, fmt.Errorf("the server has no JetStream (%w): start it with nats-server -js", err)
	case api != nil && api.ErrorCode == codeStreams:
		return nil, fmt.Errorf("bucket %q: the server's limit max_streams, in the account's jetstream: a bucket needs one; raise it (%w)", bucketName, err)
	case api != nil && api.ErrorCode == codeBytesRequired:
		return nil, fmt.Errorf("bucket %q: the server's limit max_bytes_required, in the account's jetstream: set it to false, or create the bucket with a bound of bytes before joining (%w)", bucketName, err)
	case err != nil:
		return nil, fmt.Errorf("bucket %q: %w", bucketName, err)
	}
	return keys{kv}, nil
}

// errUnreadable means that a value is a foreign one, or that of a newer version.
var errUnreadable = errors.New("is no budget that this version can read")

// read returns the value of a key and its revision for write; zero if there is none.
func (m *Member) read(ctx context.Context, key string) (budget.State, uint64, error) {
	began := m.now()
	entry, err := m.kv.Get(ctx, key)
	m.heard(began, err, false)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return budget.State{}, 0, nil
	case err != nil:
		return budget.State{}, 0, err
	}
	s, err := budget.Parse(entry.Value())
	if err != nil {
		return s, 0, fmt.Errorf("key %q of bucket %q %w (%w): if a newer version wrote it, update this replica; if none did, stop all members and delete it", key, bucketName, errUnreadable, err)
	}
	return s, entry.Revision(), nil
}

// write replaces the value of a key by next if the revision still matches, and reports whether it
// did.
func (m *Member) write(ctx context.Context, key string, next budget.State, revision uint64) (won bool, err error) {
	began := m.now()
	if revision == 0 {
		_, err = m.kv.Create(ctx, key, next.Encode())
	} else {
		_, err = m.kv.Update(ctx, key, next.Encode(), revision)
	}
	m.heard(began, err, true)
	api, _ := errors.AsType[*jetstream.APIError](err)
	if errors.Is(err, jetstream.ErrKeyExists) || api != nil && api.ErrorCode == codeOtherRevision { // another member was faster
		return false, nil
	}
	return err == nil, err
}

func (m *Member) disconnect() {
	if m.conn != nil {
		m.conn.Close()
	}
}

// sleep waits for d, and returns the error of ctx if ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-pause.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
