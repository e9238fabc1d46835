// Command patient plays the roles of the experiments that need the patient API.
package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	pattern "github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
	"github.com/spillway-go/spillway/examples/patientapi/token"
	"github.com/spillway-go/spillway/lab/callgrind"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/patterns"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/lab/shapes"
)

var roles = map[string]contestant.Role{
	overload.RoleService:  contestant.Server(loaded),
	patterns.RoleServer:   contestant.Server(served),
	patterns.RoleDatabase: contestant.Func(database),
	patterns.RoleSizes:    contestant.Func(sizes),
	overload.RoleBout:     contestant.Func(bout),
	postgres.RoleDatabase: contestant.Server(kept),
	postgres.RoleLock:     contestant.Server(locked),
	shapes.RoleCountH:     callgrind.Role(shapes.Served),
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
func serve(ctx context.Context, ready contestant.Ready, c httpapi.Config, look func(*service.Sample)) (*service.Served, error) {
	web, err := authenticated(c)
	if err != nil {
		return nil, err
	}
	report, err := service.Serve(ctx, ready, &http.Server{Handler: web, ReadHeaderTimeout: 10 * time.Second}, look)
	if err != nil {
		return nil, err
	}
	return report, drained(ctx, c.Runner)
}

func drained(ctx context.Context, runner *pattern.Runner) error {
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return runner.Drain(drain)
}

// authenticated is the service's own HTTP API, for a clinician.
func authenticated(c httpapi.Config) (http.Handler, error) {
	verifier, authorization, err := clinician()
	if err != nil {
		return nil, err
	}
	c.Verifier = verifier
	api := httpapi.New(c)
	api.SetReady(true)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header["Authorization"] = authorization
		api.ServeHTTP(w, r)
	}), nil
}

// clinician returns what verifies the token of a clinician, and the header with it. The
// clients of an experiment send none: it is put into their requests on arrival, so that
// each is authenticated, and the key of it never leaves this process.
func clinician() (*token.Verifier, []string, error) {
	signer, err := token.NewSigner()
	if err != nil {
		return nil, nil, err
	}
	text, err := signer.Mint(token.Grant{Role: access.Clinician, Lifetime: 24 * time.Hour})
	if err != nil {
		return nil, nil, err
	}
	verifier, err := signer.Verifier()
	return verifier, []string{"Bearer " + text}, err
}
