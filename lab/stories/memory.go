package stories

import (
	"fmt"
	"net/http"
	"runtime"
	"time"

	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/limiter"
)

const (
	memoryLimit = 192 << 20 // GOMEMLIMIT
	memoryCap   = memoryLimit / 4 * 5

	documentSize = 2 << 20 // that a request holds
	documentHeld = 400 * time.Millisecond
	documentWork = 1500 * time.Microsecond // of processor time for it

	// Less than by default: of requests that hold megabytes many come between two collections.
	memoryShare = .7
)

// memory is requests that hold memory, and a collector that finds nothing to free.
var memory = story{
	name: "memory", load: "2x the memory",
	service: func(_ job, f *front) (http.Handler, error) {
		admit, err := f.admit(limiter.Config{Signals: []limiter.Signal{limiter.Memory(memoryShare)}}, 0)
		if err != nil {
			return nil, err
		}
		work := burn.For(documentWork)
		return admit(answering(func(r *http.Request) error {
			document := make([]byte, documentSize)
			touch(document)
			work()
			err := service.Pause(r.Context(), documentHeld) // for another service, which is never slow
			runtime.KeepAlive(document)
			return err
		})), nil
	},
	crowd: func(Config) manners {
		return manners{path: func(uint64) string { return "/" }, patience: 2 * time.Second, tries: 1}
	},
	sends: func(c Config) service.Load {
		rate := 2 * memoryLimit / (documentSize * documentHeld.Seconds())
		return service.Load{Stretches: []service.Stretch{{Rate: rate, For: c.Time}}}
	},
	figures: func(_ Config, _ *crowd, run *results.Run) map[string]float64 {
		if run.Process.CPUSeconds == 0 { // not known, or killed
			return map[string]float64{}
		}
		return map[string]float64{"gc": 100 * run.Process.GCShare}
	},
	spec: func(s *contestant.Spec) {
		s.Env, s.MemoryCap = []string{fmt.Sprintf("GOMEMLIMIT=%d", memoryLimit)}, memoryCap
	},
	expect: func(c Config, pattern string) time.Duration {
		if pattern == unprotected {
			return min(c.Time, 2*time.Second) // then it is killed
		}
		return c.Time + time.Second
	},
}

// touch makes the system give the memory.
func touch(b []byte) {
	const page = 4 << 10
	for i := 0; i < len(b); i += page {
		b[i] = 1
	}
}
