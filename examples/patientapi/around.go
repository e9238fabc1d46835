package patientapi

import "context"

// Question is one question to a Store.
type Question struct {
	Kind string // patient, patients, search, count, observations or clinicians
	ID   string // of the patient; empty where several are asked for, or none
}

// Around returns store with do around each question but Ping. Do asks the question, with the
// context that it chooses, or returns why not. After an error of do, nobody is left in what was
// to be filled.
func Around(store Store, do func(ctx context.Context, q Question, ask func(context.Context) error) error) Store {
	return around{store, do}
}

type around struct {
	Store
	do func(context.Context, Question, func(context.Context) error) error
}

// fill is do for a question that fills dst.
func (a around) fill(ctx context.Context, q Question, dst interface{ Clear() }, ask func(context.Context) error) error {
	err := a.do(ctx, q, ask)
	if err != nil {
		dst.Clear()
	}
	return err
}

func (a around) Patient(ctx context.Context, id string, dst *Patient) error {
	return a.fill(ctx, Question{"patient", id}, dst, func(ctx context.Context) error { return a.Store.Patient(ctx, id, dst) })
}

func (a around) Patients(ctx context.Context, ids []string, dst *Batch) error {
	return a.fill(ctx, Question{Kind: "patients"}, dst, func(ctx context.Context) error { return a.Store.Patients(ctx, ids, dst) })
}

func (a around) Search(ctx context.Context, s PatientSearch, dst *Page) error {
	return a.fill(ctx, Question{Kind: "search"}, dst, func(ctx context.Context) error { return a.Store.Search(ctx, s, dst) })
}

func (a around) Count(ctx context.Context, s PatientSearch) (n int, err error) {
	err = a.do(ctx, Question{Kind: "count"}, func(ctx context.Context) (err error) { n, err = a.Store.Count(ctx, s); return err })
	return n, err
}

func (a around) Observations(ctx context.Context, id string) (all []Observation, err error) {
	err = a.do(ctx, Question{"observations", id}, func(ctx context.Context) (err error) { all, err = a.Store.Observations(ctx, id); return err })
	return all, err
}

func (a around) Clinicians(ctx context.Context, q ClinicianQuery) (all []Clinician, err error) {
	err = a.do(ctx, Question{Kind: "clinicians"}, func(ctx context.Context) (err error) { all, err = a.Store.Clinicians(ctx, q); return err })
	return all, err
}
