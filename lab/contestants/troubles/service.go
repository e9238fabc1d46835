package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/metrics"
	"github.com/spillway-go/spillway/metricsprom"
	"github.com/spillway-go/spillway/shedlog"
)

// route is a route of the service.
type route struct {
	pattern, path string
	weight        float64       // of a hundred requests
	takes         time.Duration // of the disk, on average
	priority      spillway.Priority
}

var routes = []route{
	{"GET /patients/{id}", "/patients/1", 30, 8 * time.Millisecond, spillway.Normal},
	{"GET /patients", "/patients", 10, 25 * time.Millisecond, spillway.Normal},
	{"GET /observations/{id}", "/observations/1", 15, 10 * time.Millisecond, spillway.Normal},
	{"GET /medications/{id}", "/medications/1", 10, 12 * time.Millisecond, spillway.Normal},
	{"GET /appointments", "/appointments", 10, 20 * time.Millisecond, spillway.Normal},
	{"POST /appointments", "/appointments", 5, 30 * time.Millisecond, spillway.High},
	{"GET /documents/{id}", "/documents/1", 8, 40 * time.Millisecond, spillway.Normal},
	{"POST /documents", "/documents", 4, 40 * time.Millisecond, spillway.Normal},
	{"GET /reports/{id}", "/reports/1", 4, 60 * time.Millisecond, spillway.Low},
	{"POST /login", "/login", 4, 15 * time.Millisecond, spillway.Critical},
}

const (
	upload   = "POST /documents"
	download = "GET /documents/{id}"
	slowest  = download

	deadline    = time.Second
	connections = 8 // of the database: some 420 requests a second
	calmRate    = 200
	large       = 1 << 20 // bytes of a document, if a client asks for all of it
)

// service is the service of a scene.
type service struct {
	*scene
	db       *sql.DB
	troubled atomic.Bool
}

// serve is the service as a process: it prints its address, has its trouble, and writes the recording.
func serve(ctx context.Context, name, commit, file string) error {
	i := slices.Index(names(), name)
	if i < 0 {
		return fmt.Errorf("there is no scene %q", name)
	}
	s := &service{scene: &scenes[i]}
	dir, err := os.MkdirTemp("", "troubles-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := s.open(ctx, filepath.Join(dir, "db")); err != nil {
		return err
	}
	rec := newRecorder(s.scene, commit)
	lim, handler, err := s.handler(rec)
	if err != nil {
		return err
	}
	defer lim.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), ConnContext: smallBuffer}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	fmt.Println(listener.Addr())

	ctx, cancel := context.WithTimeout(ctx, calm+trouble)
	defer cancel()
	ended := make(chan error, 1)
	time.AfterFunc(calm, func() {
		s.troubled.Store(true)
		if s.begin != nil {
			ended <- s.begin(ctx, s)
		}
	})
	if err := rec.run(ctx, lim); err != nil {
		return err
	}
	if s.begin != nil {
		if err := <-ended; err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	return rec.write(file)
}

// smallBuffer bounds what the kernel takes from an answer that a client does not read.
func smallBuffer(ctx context.Context, c net.Conn) context.Context {
	_ = c.(*net.TCPConn).SetWriteBuffer(16 << 10)
	return ctx
}

// open makes the database. Its function disk waits, as a database does for its disk.
func (s *service) open(ctx context.Context, file string) (err error) {
	if err := sqlite.RegisterScalarFunction("disk", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		time.Sleep(time.Duration(args[0].(int64)))
		return int64(0), nil
	}); err != nil {
		return err
	}
	if s.db, err = sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(20)"); err != nil {
		return err
	}
	s.db.SetMaxOpenConns(connections + 1) // the migration has one
	s.db.SetMaxIdleConns(connections + 1)
	_, err = s.db.ExecContext(ctx, `create table records (id integer primary key, value integer not null);
		insert into records with recursive n (i) as (select 1 union all select i + 1 from n where i < 20000) select i, i * 7919 % 1000 from n`)
	return err
}

// query asks the database, and waits as long as it is locked. It ends with ctx.
func (s *service) query(ctx context.Context, takes time.Duration) (sum int64, err error) {
	takes = time.Duration(float64(takes) * (.5 + rand.Float64()))
	from := 1 + rand.IntN(19_900)
	for {
		err = s.db.QueryRowContext(ctx, "select sum(value) + disk(?) from records where id between ? and ?", int64(takes), from, from+49).Scan(&sum)
		if locked := new(sqlite.Error); ctx.Err() != nil || !errors.As(err, &locked) || locked.Code() != sqlite3.SQLITE_BUSY {
			return sum, err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// handler is the service behind the middleware, with its limiter.
func (s *service) handler(rec *recorder) (*limiter.Limiter, http.Handler, error) {
	mux := http.NewServeMux()
	priorities := map[string]spillway.Priority{}
	for _, rt := range routes {
		var h http.HandlerFunc = func(w http.ResponseWriter, r *http.Request) { s.work(w, r, &rt) }
		work := h
		if s.around != nil {
			h = func(w http.ResponseWriter, r *http.Request) {
				if s.troubled.Load() {
					s.around(s, w, r, work)
					return
				}
				work(w, r)
			}
		}
		mux.HandleFunc(rt.pattern, h)
		priorities[rt.pattern] = rt.priority
	}
	cfg := s.limit
	cfg.Name = "http"
	cfg.Signals = []limiter.Signal{limiter.Memory(0)}
	logger := slog.New(slog.NewTextHandler(rec, nil))
	dry := shedlog.New(shedlog.Config{Logger: logger.With("dry_run", true)})
	cfg.Observer = &limiter.Observer{WouldReject: dry.Rejected}
	lim, err := limiter.New(cfg)
	if err != nil {
		return nil, nil, err
	}
	dry.Watch(lim)
	admit, err := admissionhttp.New(admissionhttp.Config{
		Limiter: lim, Logger: logger, Hold: true,
		Deadlines: map[spillway.Priority]time.Duration{spillway.Normal: deadline},
		Priority: func(r *http.Request) spillway.Priority {
			_, pattern := mux.Handler(r)
			return priorities[pattern]
		},
	})
	if err != nil {
		return nil, nil, err
	}
	rec.registry = prometheus.NewRegistry()
	rec.registry.MustRegister(metricsprom.New(metrics.Limiter(lim)))
	return lim, admit(mux), nil
}

// work answers a request. A document is read before its time begins, as uploads are.
func (s *service) work(w http.ResponseWriter, r *http.Request, rt *route) {
	ctx := r.Context()
	if s.ignoring && s.troubled.Load() {
		ctx = context.WithoutCancel(ctx)
	}
	if rt.pattern == upload {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, "the document did not come", http.StatusBadRequest)
			return
		}
		if !s.ignoring {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), deadline)
			defer cancel()
		}
	}
	sum, err := s.query(ctx, rt.takes)
	switch {
	case err != nil && ctx.Err() != nil:
		http.Error(w, "too late", http.StatusGatewayTimeout)
		return
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if rt.pattern == download && r.URL.RawQuery == "all" {
		w.Header().Set("Content-Length", fmt.Sprint(large))
		_, _ = io.Copy(w, io.LimitReader(endless{}, large))
		return
	}
	fmt.Fprintln(w, strings.Repeat("record ", 20), sum)
}

// endless is a document of spaces.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
