//go:build soak

package app

import "testing"

// Nothing is injected into SQLite: every text was in every place that takes one.
func TestSoakNothingIsInjectedIntoSQLite(t *testing.T) { injectedIntoSQLite(t, 1) }

// Nothing is injected into PostgreSQL: every text was in every place that takes one.
func TestSoakNothingIsInjectedIntoPostgres(t *testing.T) { injectedIntoPostgres(t, 1) }
