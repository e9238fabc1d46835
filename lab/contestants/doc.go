// Package contestants is the home of everything heavy that the lab measures: small
// programs, one a folder, that package lab/contestant builds on demand into the
// user's cache. The command spillway links none of them.
package contestants
