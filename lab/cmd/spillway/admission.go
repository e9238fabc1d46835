package main

import (
	"time"

	"github.com/spillway-go/spillway/lab/admission"
	"github.com/spillway-go/spillway/lab/overload"
)

type labAdmissionCmd struct {
	Quick bool `env:"SPILLWAY_LAB_ADMISSION_QUICK" group:"Size" help:"Three seconds of warm-up and four of measurement, some four minutes."`

	WarmUp      time.Duration `env:"SPILLWAY_LAB_ADMISSION_WARM_UP" group:"Size" placeholder:"D" help:"The same load before each measurement; 5s unless given."`
	Measure     time.Duration `env:"SPILLWAY_LAB_ADMISSION_MEASURE" group:"Size" placeholder:"D" help:"How long each measurement is; 10s unless given."`
	Slots       int           `env:"SPILLWAY_LAB_ADMISSION_SLOTS" group:"Size" default:"10" help:"Requests that the backend does at full speed at one time."`
	MinWork     time.Duration `env:"SPILLWAY_LAB_ADMISSION_MIN_WORK" group:"Size" default:"20ms" help:"Least time a request takes alone."`
	MaxWork     time.Duration `env:"SPILLWAY_LAB_ADMISSION_MAX_WORK" group:"Size" default:"60ms" help:"Most time a request takes alone."`
	Connections int           `env:"SPILLWAY_LAB_ADMISSION_CONNECTIONS" group:"Size" default:"0" help:"Idle connections of hostile clients; 0: a third of the files that a process may open, at most 50,000."`

	Part []string `env:"SPILLWAY_LAB_ADMISSION_PART" placeholder:"NAME" help:"Only these parts: storm, leavers, dryrun, hostile."`

	labRun `embed:"" set:"id=admission" set:"seeds=arrivals, service times, the order of the runs"`
}

// Help teaches.
func (labAdmissionCmd) Help() string {
	return `A small HTTP service behind admissionhttp, told no number, in a process of its own. It waits for a backend of ten slots, 20 to 60 ms a request, some 250 a second: one that lets more wait (N-way) and one that gets less done the more it is asked (degrading).

storm     200 clients with admissionhttp/client send three times the capacity (open loop, Poisson) and retry within five seconds what was refused; a fifth is critical. Goodput beside the capacity, and whether the retries come in waves.
leavers   the same, and every third client leaves after half of the service time: what the others get.
dryrun    twice the capacity without retries, in a dry run and for real: the share refused of each priority, predicted and measured.
hostile   slow headers, headers of 1 MB, endless and trickling bodies, half-closed connections, HTTP/2 streams that are reset at once, thousands of idle connections, from a third process: how long health probes take, and memory.

Examples:
  spillway lab admission                    eight minutes on two cores
  spillway lab admission --quick            four minutes
  spillway lab admission --part hostile --connections 1000
  spillway lab judge spillway-results/…     verdicts again, from the raw runs

` + labEnds
}

func (c *labAdmissionCmd) Run(env *environment) error {
	config := admission.Defaults()
	if c.Quick {
		config = admission.Quick()
	}
	if c.Part != nil {
		config.Parts = c.Part
	}
	if c.WarmUp != 0 {
		config.WarmUp = c.WarmUp
	}
	if c.Measure != 0 {
		config.Measure = c.Measure
	}
	config.Connections, config.MemoryCap = c.Connections, c.bytes()
	config.Work = overload.Work{Slots: c.Slots, Min: c.MinWork, Max: c.MaxWork}
	return c.run(env, admission.Experiment{Config: config})
}
