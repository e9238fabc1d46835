// Command patient plays the roles of the experiments that need the patient API.
package main

import (
	"context"
	"fmt"
	"maps"

	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/contestants/patient/overload"
	"github.com/spillway-go/spillway/lab/contestants/patient/patterns"
	"github.com/spillway-go/spillway/lab/contestants/patient/shapes"
	patternsplan "github.com/spillway-go/spillway/lab/patterns"
)

func main() { contestant.Program(roles()) }

func roles() map[string]contestant.Role {
	all := map[string]contestant.Role{
		patternsplan.RoleDatabase: contestant.Func(database),
	}
	maps.Copy(all, overload.Roles())
	maps.Copy(all, patterns.Roles())
	maps.Copy(all, shapes.Roles())
	return all
}

// database makes the SQLite file of that many patients, or finds that of an earlier
// session, and returns its path.
func database(ctx context.Context, patients int) (string, error) {
	set := sqlite.Set{Patients: patients, Seed: 1}
	path, err := sqlite.DefaultPath(set)
	if err != nil {
		return "", fmt.Errorf("no place for the database: %w", err)
	}
	db, err := sqlite.OpenSet(ctx, path, set, sqlite.Options{}, nil)
	if err != nil {
		return "", fmt.Errorf("%w; it belongs in your cache folder, which XDG_CACHE_HOME or HOME chooses", err)
	}
	return path, db.Close()
}
