// Package peers asks other libraries, and Spillway, the questions that a choice depends
// on: what becomes of a panic, who is told of an error, what happens when a queue is full
// or a pool is stopped. All of it is in its tests. The answers are in testdata, and
// docs/migrate/compare.md shows them.
package peers
