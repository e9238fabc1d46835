package clusterlimit

import (
	"context"
	"errors"
	"fmt"
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
	conn, err := nats.Connect(cfg.URL, nats.Name("spillway budget "+cfg.Name), nats.Timeout(timeout), nats.MaxReconnects(-1),
		nats.ReconnectWait(cfg.Lease/renewals), nats.ReconnectJitter(cfg.Lease/renewals, cfg.Lease/renewals),
		nats.IgnoreAuthErrorAbort(), nats.ReconnectBufSize(-1), nats.PingInterval(cfg.Lease), nats.MaxPingsOutstanding(2))
	if err != nil {
		return nil, fmt.Errorf("clusterlimit: no engine at the URL (%w): start one with nats-server -js, or correct Config.URL", err)
	}
	return conn, nil
}

// bucket opens the bucket, and creates a missing bucket.
func bucket(ctx context.Context, conn *nats.Conn, name string) (jetstream.KeyValue, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	kv, err := js.KeyValue(ctx, name)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name, Description: "budgets shared by replicas", Storage: jetstream.FileStorage})
		if errors.Is(err, jetstream.ErrBucketExists) { // another member was faster
			kv, err = js.KeyValue(ctx, name)
		}
	}
	switch {
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, nats.ErrNoResponders):
		return nil, fmt.Errorf("the server has no JetStream (%w): start it with nats-server -js", err)
	case err != nil:
		return nil, fmt.Errorf("bucket %q: %w", name, err)
	}
	return kv, nil
}

// read returns the budget and its revision for write; zero if there is no budget.
func (m *Member) read(ctx context.Context) (budget.State, uint64, error) {
	entry, err := m.kv.Get(ctx, m.key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return budget.State{}, 0, nil
	case err != nil:
		return budget.State{}, 0, err
	}
	s, err := budget.Parse(entry.Value())
	if err != nil {
		return s, 0, fmt.Errorf("key %q of bucket %q is no budget that this version can read (%w): if a newer version wrote it, update this replica; if none did, stop all members and delete it", m.key, m.cfg.Bucket, err)
	}
	return s, entry.Revision(), nil
}

// write replaces the budget by next if the revision still matches, and reports whether it did.
func (m *Member) write(ctx context.Context, next budget.State, revision uint64) (won bool, err error) {
	if revision == 0 {
		_, err = m.kv.Create(ctx, m.key, next.Encode())
	} else {
		_, err = m.kv.Update(ctx, m.key, next.Encode(), revision)
	}
	if errors.Is(err, jetstream.ErrKeyExists) { // another member was faster
		return false, nil
	}
	return err == nil, err
}

// inWords explains an error of the client library: the library mentions a buffer when the
// connection is lost. last is the connection's latest error.
func inWords(err, last error) error {
	switch {
	case errors.Is(err, nats.ErrReconnectBufExceeded) && errors.Is(last, nats.ErrAuthorization):
		return fmt.Errorf("the engine refuses the login, and is tried again: see whether the credentials are right (%w)", last)
	case errors.Is(err, nats.ErrReconnectBufExceeded):
		return fmt.Errorf("the engine cannot be reached, and is tried again: see whether the NATS server runs (%w)", err)
	case errors.Is(err, nats.ErrConnectionClosed):
		return fmt.Errorf("Config.Conn is closed, and the lease is never renewed: open another with nats.MaxReconnects(-1) and nats.IgnoreAuthErrorAbort, and join again (%w)", err)
	}
	return err
}

// disconnect closes the member's own connection.
func (m *Member) disconnect() {
	if m.cfg.Conn == nil {
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
