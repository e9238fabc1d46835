package metricsprom

import (
	"context"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/metrics"
)

// threshold returns the target utilization of each replica from the deployment file.
func threshold(t *testing.T) float64 {
	t.Helper()
	text := must(os.ReadFile("../deploy/kubernetes/keda.yaml"))
	found := regexp.MustCompile(`threshold: "([0-9.]+)"`).FindSubmatch(text)
	if found == nil {
		t.Fatal("keda.yaml has no threshold")
	}
	n := must(strconv.ParseFloat(string(found[1]), 64))
	return n
}

// Each round is half a minute of load on the number of replicas that the last round's demand
// requested. From far too few and from far too many replicas, the rounds settle at a number without
// refusals, and stay there.
func TestScalingByDemandComesToRestWhereNothingIsRefused(t *testing.T) {
	full := threshold(t)
	const (
		slots, work = 5, 100 * time.Millisecond // of a replica: 50 requests a second
		every       = 5 * time.Millisecond      // 200 requests a second: 4 replicas would be full
	)
	for _, replicas := range []int{1, 12} {
		synctest.Test(t, func(t *testing.T) {
			var before int
			for round := range 4 {
				registry := prometheus.NewRegistry()
				var lims []*limiter.Limiter
				for i := range replicas {
					lim := newLimiter(limiter.Config{Name: strconv.Itoa(i), Law: limit.NewFixed(slots), MaxWait: work})
					lims = append(lims, lim)
					registry.MustRegister(New(metrics.Limiter(lim)))
				}
				for i := range int(30 * time.Second / every) {
					go func() {
						_ = lims[i%replicas].Do(t.Context(), func(context.Context) error { time.Sleep(work); return nil })
					}()
					time.Sleep(every)
				}
				s := scrape(t, registry)
				time.Sleep(time.Minute)
				refused := uint64(0)
				for _, lim := range lims {
					refused += lim.Stats().Rejected
				}
				before, replicas = replicas, int(math.Ceil(total(s, "spillway_demand")/full))
				t.Logf("round %d: %d replicas, %d refused, next %d", round, before, refused, replicas)
				if round >= 2 && (refused > 0 || replicas < 5 || replicas > 7) {
					t.Errorf("round %d: %d replicas refuse %d; next there are %d, want about %.1f", round, before, refused, replicas, 4/full)
				}
			}
		})
	}
}

func TestTheAlertsDoWhatTheirTestsSay(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("there is no promtool: it comes with Prometheus")
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", "../deploy/prometheus/alerts_test.yaml").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
