package metricsotel

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/metric"

	"github.com/spillway-go/spillway/metrics"
)

// names are the sources that each meter has. A meter does not tell what is registered with it, and
// adds up what two sources of one name observe.
var names = struct {
	sync.Mutex
	of map[metric.Meter][]*metrics.Source
}{of: map[metric.Meter][]*metrics.Source{}}

// taken is a registration that has its sources in names.
type taken struct {
	metric.Registration
	meter   metric.Meter // nil: in no list
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
	names.Lock()
	defer names.Unlock()
	all := slices.Concat(names.of[meter], sources)
	if err := metrics.Distinct(all...); err != nil {
		return nil, fmt.Errorf("%w, or unregister the first", err)
	}
	names.of[meter] = all
	return &taken{meter: meter, sources: sources}, nil
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
	if t.meter == nil {
		return
	}
	names.Lock()
	defer names.Unlock()
	left := slices.DeleteFunc(names.of[t.meter], func(s *metrics.Source) bool { return slices.Contains(t.sources, s) })
	if names.of[t.meter] = left; len(left) == 0 {
		delete(names.of, t.meter)
	}
}
