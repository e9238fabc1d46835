// Package proof has no code of its own. Its tests run producers, workers and servers as
// processes, kill them at random moments, and compare what was acknowledged with what was
// done:
//
//	go test ./jobqueue/internal/proof -v -run Kill                                          one kill of each role, and of one node of three
//	make soak NAMES=Killed                                                                  a hundred, and twenty with three nodes
//	go test -tags soak ./jobqueue/internal/proof -v -run SoakKilled -kills 1000 -timeout 0  a thousand, and a thousand with three nodes
//
// CI does the first. The others show how far they are, and -seed repeats who is killed.
//
// A killed process loses what it had in its own memory. It does not lose what it had
// written to files: only a machine that stops does. What fsync adds is therefore not
// proven here.
package proof
