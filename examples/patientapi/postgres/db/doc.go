// Package db has the questions of queries.sql as functions. All but this file is
// generated.
package db
