package patterns

import (
	"testing"
	"unsafe"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
)

func TestStalledRequestsAreCountedInMemory(t *testing.T) {
	c := experiment.Sized[Config]("quick")
	c.Users = 200
	run, err := c.stalledCell().Run(t.Context(), experiment.Trial{Seed: 1})
	if err != nil || !(run.Extra[stalledMemory.Key] > 0) || run.Params["users"] != 200. {
		t.Errorf("%+v, %v", run, err)
	}
}

func TestAPoolIsFilledWithoutCallers(t *testing.T) {
	figures, err := filled(t.Context(), filling{Workers: 5, Queue: 20, Pools: 3})
	if _, measured := figures[filledMemory.Key]; err != nil || !measured {
		t.Errorf("%v, %v", figures, err)
	}
}

func TestTheFormulaIsThePublishedOne(t *testing.T) {
	if got := (filling{Workers: 20, Queue: 100}).formula(); got != 20*2048+100*specimen.JobSize {
		t.Errorf("%v", got)
	}
	if job := unsafe.Sizeof(specimen.Request{}); unsafe.Sizeof(job) == 8 && job != 48 {
		t.Errorf("a job has %d bytes", job)
	}
	for _, f := range fillings {
		if f.Workers*f.Pools != 2_000 || f.Queue != 5*f.Workers {
			t.Errorf("%+v", f)
		}
	}
}
