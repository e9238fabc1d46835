// Package migrate brings the tables of a database up to date, by goose.
package migrate

import (
	"context"
	"database/sql"
	"embed"
	"io/fs"

	"github.com/pressly/goose/v3"
)

// New returns what makes the steps in the folder migrations of files.
func New(dialect goose.Dialect, db *sql.DB, files embed.FS, options ...goose.ProviderOption) (*goose.Provider, error) {
	steps, err := fs.Sub(files, "migrations")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(dialect, db, steps, options...)
}

// Up makes all steps that were not made yet.
func Up(ctx context.Context, dialect goose.Dialect, db *sql.DB, files embed.FS, options ...goose.ProviderOption) error {
	provider, err := New(dialect, db, files, options...)
	if err == nil {
		_, err = provider.Up(ctx)
	}
	return err
}
