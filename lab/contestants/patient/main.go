// Command patient plays the roles of the experiments that need the patient API.
package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/patterns"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/lab/shapes"
)

var roles = map[string]contestant.Role{
	overload.RoleServer:   contestant.Server(overloaded),
	patterns.RoleCall:     contestant.Func(called),
	patterns.RoleServer:   contestant.Server(served),
	patterns.RoleDatabase: contestant.Func(database),
	shapes.RoleReuseH:     contestant.Func(reuseH),
}

func main() { contestant.Program(roles) }

// database makes the SQLite file of that many patients, or finds that of an earlier
// session, and returns its path.
func database(ctx context.Context, patients int) (string, error) {
	db, path, err := openSet(ctx, patients)
	if err != nil {
		return "", err
	}
	return path, db.Close()
}

// openSet opens the SQLite file of that many patients, of an earlier session or made now.
func openSet(ctx context.Context, patients int) (db *sqlite.Store, path string, err error) {
	set := sqlite.Set{Patients: patients, Seed: 1}
	if path, err = sqlite.DefaultPath(set); err != nil {
		return nil, "", fmt.Errorf("no place for the database: %w", err)
	}
	if db, err = sqlite.OpenSet(ctx, path, set, sqlite.Options{}, nil); err != nil {
		return nil, "", fmt.Errorf("%w; it belongs in your cache folder, which XDG_CACHE_HOME or HOME chooses", err)
	}
	return db, path, nil
}

// serve plays the service's own HTTP API until ctx ends.
func serve(ctx context.Context, ready contestant.Ready, c httpapi.Config, before func(http.Handler) http.Handler, look func(*service.Sample)) (*service.Served, error) {
	api := httpapi.New(c)
	api.SetReady(true)
	report, err := service.Serve(ctx, ready, &http.Server{Handler: before(api), ReadHeaderTimeout: 10 * time.Second}, look)
	if err != nil {
		return nil, err
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return report, c.Runner.Drain(drain)
}
