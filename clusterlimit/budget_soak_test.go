//go:build soak && unix && !race

package clusterlimit

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

const (
	inBusyReplica = "CLUSTERLIMIT_TEST_BUSY" // its settings as JSON make the test binary a busy replica
	busyReplicas  = 8
	busySlots     = 100
	busyRate      = 2_000_000
	busyLease     = time.Second
)

// busy are the settings of a replica whose clients ask back to back.
type busy struct {
	URL        string
	FailClosed bool
	Rate       int
	Clients    int
	Work       time.Duration
	Referee    string // a file that all replicas map
	Index      int
}

// referee counts what truly runs, in memory that the processes share. Work of a process that is
// stopped counts as running, as it does for a database that works for the process.
type referee struct {
	running, most atomic.Int64
	began         atomic.Bool
	admitted      [busyReplicas]struct {
		atomic.Int64
		_ [56]byte // on a cache line of its own
	}
}

func mapped(path string) (*referee, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size := int(unsafe.Sizeof(referee{}))
	if err := f.Truncate(int64(size)); err != nil {
		return nil, err
	}
	memory, err := syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*referee)(unsafe.Pointer(&memory[0])), nil
}

func (r *referee) begin(replica int) {
	r.admitted[replica].Add(1)
	n := r.running.Add(1)
	for old := r.most.Load(); n > old && !r.most.CompareAndSwap(old, n); old = r.most.Load() {
	}
}

func (r *referee) admissions() (n int64) {
	for i := range r.admitted {
		n += r.admitted[i].Load()
	}
	return n
}

// The test binary is a replica if its environment says so.
func init() {
	if text := os.Getenv(inBusyReplica); text != "" {
		if err := runBusy([]byte(text)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// runBusy says that its replica has joined, and lets clients ask until the standard input ends.
func runBusy(text []byte) error {
	var b busy
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	r, err := mapped(b.Referee)
	if err != nil {
		return err
	}
	m, err := joined(context.Background(), Config{URL: b.URL, Concurrency: busySlots, Rate: b.Rate, Lease: busyLease, FailClosed: b.FailClosed})
	if err != nil {
		return err
	}
	lim, err := limiter.New(limiter.Config{Law: limit.NewFixed(busySlots), QueueSize: -1})
	if err == nil {
		err = m.Bind(lim)
	}
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	for range b.Clients {
		clients.Go(func() {
			for ctx.Err() == nil {
				if !r.began.Load() || m.Allow(1) != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				permit, err := lim.TryAcquire(ctx)
				if err != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				r.begin(b.Index)
				if b.Work > 0 {
					time.Sleep(b.Work)
				}
				r.running.Add(-1)
				permit.Release()
			}
		})
	}
	fmt.Println("true")                   // it has joined
	_, _ = os.Stdin.Read(make([]byte, 1)) // until its end
	stop()
	clients.Wait()
	return m.Close(context.Background())
}

// share starts the replicas, the last of them behind a proxy, and waits until they have their shares.
func share(t *testing.T, b busy) (*referee, []*process, *proxy) {
	t.Helper()
	b.URL, b.Referee = engine(t), filepath.Join(t.TempDir(), "referee")
	r, err := mapped(b.Referee)
	check(t, err)
	p := newProxy(t, b.URL[len("nats://"):])
	var replicas []*process
	for b.Index = range busyReplicas {
		if b.Index == busyReplicas-1 {
			b.URL = "nats://" + p.Addr().String()
		}
		replica := newProcess(t, inBusyReplica, b)
		var ready bool
		check(t, replica.answers.Decode(&ready))
		replicas = append(replicas, replica)
	}
	r.began.Store(true)
	time.Sleep(2 * busyLease)
	return r, replicas, p
}

// Eight processes with one rate admit a million a second together, and not more than the rate.
func TestSoakProcessesAdmitAMillionASecondTogether(t *testing.T) {
	const clients = 4
	r, _, _ := share(t, busy{Rate: busyRate, Clients: clients})
	began, before := time.Now(), r.admissions()
	time.Sleep(time.Second)
	admitted, took := float64(r.admissions()-before), time.Since(began).Seconds()
	soak.AtLeast(t, "admissions", admitted/took, 1e6, "/s", "an admission sends no message")
	soak.AtMost(t, "admissions in the time", admitted, busyRate*(took+.1)+busyReplicas*clients, "", "the rate, a tenth of a second of it saved up, and one for each client")
}

// Eight processes run no more than their budget at a time, and at most replicas x lease beyond it while
// one is cut off and after one was stopped for longer than its lease.
func TestSoakProcessesShareOneBudget(t *testing.T) {
	for name, failClosed := range map[string]bool{"keep": false, "fail closed": true} {
		r, replicas, p := share(t, busy{FailClosed: failClosed, Clients: 32, Work: 5 * time.Millisecond})
		before := r.admissions()
		r.most.Store(0)
		most := func(d time.Duration) float64 {
			time.Sleep(d)
			return float64(r.most.Swap(0))
		}
		soak.AtMost(t, name+": at a time", most(time.Second), busySlots, "", "the budget")
		soak.AtLeast(t, name+": admissions", float64(r.admissions()-before), busySlots, "", "replicas that admit nothing exceed nothing")
		const why = "replicas x lease: all leases together are the budget, once more"
		p.set(true)
		soak.AtMost(t, name+": at a time, one cut off", most(2*busyLease), 2*busySlots, "", why)
		p.set(false)
		time.Sleep(busyLease)
		r.most.Store(0)
		replicas[0].signal(syscall.SIGSTOP)
		time.Sleep(2 * busyLease)
		replicas[0].signal(syscall.SIGCONT)
		soak.AtMost(t, name+": at a time, one stopped", most(time.Second), 2*busySlots, "", why)
		for _, replica := range replicas {
			replica.in.Close()
		}
	}
}
