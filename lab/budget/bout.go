package budget

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
)

// The disturbances, in leases.
const (
	cutLeases  = 2 // the others wait 1.25 of them, and then take what is free
	backLeases = 1
	stopLeases = 2
)

// bout is one contestant under way.
type bout struct {
	Config
	contestant string
	referee    *Referee
	proxy      *proxy // between the engine and the last replica
	engine     *contestant.Process
	replicas   []*contestant.Process
	end        []func()
}

// begin starts an engine and the replicas.
func (c Config) begin(ctx context.Context, name string, in Replica) (b *bout, err error) {
	b = &bout{Config: c, contestant: name}
	defer func() {
		if err != nil {
			b.close(ctx)
		}
	}()
	folder, err := os.MkdirTemp("", "spillway-budget-")
	if err != nil {
		return b, err
	}
	b.end = append(b.end, func() { _ = os.RemoveAll(folder) })
	in.Contestant, in.Lease, in.Referee = name, c.Lease, filepath.Join(folder, "referee")
	var unshare func()
	if b.referee, unshare, err = contestant.Share[Referee](in.Referee); err != nil {
		return b, err
	}
	b.end = append(b.end, unshare)
	if b.engine, err = contestant.Start(ctx, contestant.Spec{Program: program, Role: RoleEngine, Input: in}, &in.URL); err != nil {
		return b, err
	}
	if b.proxy, err = newProxy(strings.TrimPrefix(in.URL, "nats://")); err != nil {
		return b, err
	}
	b.end = append(b.end, b.proxy.close)
	for i := range c.Replicas {
		in.Index = i
		if i == c.Replicas-1 {
			in.URL = "nats://" + b.proxy.Addr().String()
		}
		p, err := contestant.Start(ctx, contestant.Spec{Program: program, Role: RoleReplica, Input: in}, new(string))
		if err != nil {
			return b, err
		}
		b.replicas = append(b.replicas, p)
	}
	b.referee.began.Store(true)
	return b, nil
}

// close ends all that was started.
func (b *bout) close(ctx context.Context) (err error) {
	for _, p := range append(b.replicas, b.engine) {
		if p == nil {
			continue
		}
		if _, ended := p.Stop(ctx, nil); err == nil {
			err = ended
		}
	}
	for i := len(b.end) - 1; i >= 0; i-- {
		b.end[i]()
	}
	return err
}

// rates counts admissions of work that takes no time.
func (c Config) rates(ctx context.Context, name string) (run results.Run, err error) {
	b, err := c.begin(ctx, name, Replica{Slots: c.Slots, Rate: c.Rate, Clients: restClient})
	if err != nil {
		return run, err
	}
	err = service.Pause(ctx, warmUp*c.Lease)
	began, before := time.Now(), b.referee.admissions()
	if err == nil {
		err = service.Pause(ctx, c.Time)
	}
	admitted := float64(b.referee.admissions() - before)
	took := time.Since(began).Seconds()
	if ended := b.close(ctx); err == nil {
		err = ended
	}
	may := float64(c.Rate)*(took+.1) + float64(c.Replicas*restClient)
	run.Process, run.Extra = results.Process{ReuseRate: -1}, map[string]float64{
		admissions.Key: admitted / took, rateShare.Key: admitted / may,
	}
	return run, err
}

// works counts what runs at a time: undisturbed, with a replica that is cut off, and with
// one that is stopped.
func (c Config) works(ctx context.Context, name string) (run results.Run, err error) {
	b, err := c.begin(ctx, name, Replica{Slots: c.Slots, Clients: c.Clients, Work: c.Work})
	if err != nil {
		return run, err
	}
	most := map[string]float64{}
	before := uint64(0)
	phase := func(key string) func() error {
		return func() error { most[key] = float64(b.referee.most.Swap(0)); return nil }
	}
	wait := func(leases int, more time.Duration) func() error {
		return func() error { return service.Pause(ctx, time.Duration(leases)*c.Lease+more) }
	}
	stopped := b.replicas[0].PID()
	for _, step := range []func() error{
		wait(warmUp, 0), phase("warm-up"), func() error {
			before = b.referee.admissions()
			b.referee.lease.Store(0) // the first to join had all
			return nil
		},
		wait(0, c.Time), func() error {
			most[admissions.Key] = float64(b.referee.admissions()-before) / c.Time.Seconds()
			return nil
		}, phase(calm.Key),
		func() error { b.proxy.set(true); return nil }, wait(cutLeases, 0), phase(cut.Key),
		func() error { b.proxy.set(false); return nil }, wait(backLeases, 0), phase("back"),
		func() error { return stop(stopped) }, wait(stopLeases, 0), func() error { return resume(stopped) },
		wait(0, c.Time), phase(paused.Key),
	} {
		if err = step(); err != nil {
			break
		}
	}
	_ = resume(stopped) // also after an error, so that it can end
	lease := float64(b.referee.lease.Load())
	if ended := b.close(ctx); err == nil {
		err = ended
	}
	run.Process, run.Extra = results.Process{ReuseRate: -1}, c.figures(most, lease)
	return run, err
}

// figures are what ran at most in each phase, and by how much that is beyond the total.
func (c Config) figures(most map[string]float64, lease float64) map[string]float64 {
	out := map[string]float64{admissions.Key: most[admissions.Key], "lease": lease}
	for _, f := range phases {
		over := max(most[f.Key]-float64(c.Slots), 0)
		out[f.Key], out[overOf(f).Key] = most[f.Key], over
		if lease > 0 {
			out[leasesOf(f).Key] = over / (lease * float64(c.Replicas))
		}
	}
	return out
}
