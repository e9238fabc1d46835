// Package proof has no code of its own. Its tests run producers, workers and servers as processes,
// kill them at random moments, and compare the acknowledged jobs with the jobs that were done:
//
//	go test ./jobqueue/internal/proof -v -run Kill                                          one kill of each role, and of one node of three
//	make soak NAMES=Killed                                                                  a hundred, and twenty with three nodes
//	go test -tags soak ./jobqueue/internal/proof -v -run SoakKilled -kills 1000 -timeout 0  a thousand, and a thousand with three nodes
//
// CI runs the first command. The others log their progress. -seed repeats the choice of the killed
// processes.
//
// A killed process loses its memory. It does not lose data that it has written to files: only a
// crash of the machine does. So these tests do not show the effect of fsync.
package proof
