package metricsotel

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"weak"

	"go.opentelemetry.io/otel/metric"

	"github.com/spillway-go/spillway/metrics"
)

// names are the sources that each meter has. A meter does not tell what is registered with it, and
// adds up what two sources of one name observe. The list of a meter ends with the meter.
var names = struct {
	sync.Mutex
	of map[identity][]*metrics.Source
}{of: map[identity][]*metrics.Source{}}

// identity tells meters apart, and keeps none alive.
type identity = weak.Pointer[byte]

// taken is a registration that has its sources in names.
type taken struct {
	metric.Registration
	meter   identity // zero: in no list
	sources []*metrics.Source
}

// take enters sources in the list of their meter, unless one of them has the name of another.
func take(meter metric.Meter, sources []*metrics.Source) (*taken, error) {
	if err := metrics.Distinct(sources...); err != nil {
		return nil, err
	}
	if reflect.ValueOf(meter).Kind() != reflect.Pointer { // such as noop.Meter{}, which all have in common
		return &taken{}, nil
	}
	at := (*byte)(reflect.ValueOf(meter).UnsafePointer())
	id := weak.Make(at)
	names.Lock()
	defer names.Unlock()
	before, known := names.of[id]
	all := slices.Concat(before, sources)
	if err := metrics.Distinct(all...); err != nil {
		return nil, fmt.Errorf("%w, or unregister the first", err)
	}
	if names.of[id] = all; !known {
		runtime.AddCleanup(at, forget, id)
	}
	return &taken{meter: id, sources: sources}, nil
}

// forget drops the list of a meter that is gone.
func forget(id identity) {
	names.Lock()
	defer names.Unlock()
	delete(names.of, id)
}

// Unregister ends the registration. Its names are free again.
func (t *taken) Unregister() error {
	if err := t.Registration.Unregister(); err != nil {
		return err
	}
	t.free()
	return nil
}

func (t *taken) free() {
	names.Lock()
	defer names.Unlock()
	if of, known := names.of[t.meter]; known {
		names.of[t.meter] = slices.DeleteFunc(of, func(s *metrics.Source) bool { return slices.Contains(t.sources, s) })
	}
}
