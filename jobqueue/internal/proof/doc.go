// Package proof has no code of its own. Its tests run producers, workers and servers as
// processes, kill them at random moments, and compare what was acknowledged with what was
// done:
//
//	go test ./jobqueue/internal/proof -v -run Kill                            ten kills, and four with three nodes
//	go test ./jobqueue/internal/proof -v -run Kill -kills 1000 -timeout 0     a thousand, and a thousand with three nodes
//
// CI does the first. The second shows how far it is, and -seed repeats who is killed.
//
// A killed process loses what it had in its own memory. It does not lose what it had
// written to files: only a machine that stops does. What fsync adds is therefore not
// proven here.
package proof
