module github.com/spillway-go/spillway/cmd/spillway

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0
	github.com/spillway-go/spillway v0.0.0
	github.com/spillway-go/spillway/lab v0.0.0
	github.com/spillway-go/spillway/load v0.0.0
	golang.org/x/sync v0.24.0
)

require (
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/term v0.47.0 // indirect
)

replace (
	github.com/spillway-go/spillway => ../..
	github.com/spillway-go/spillway/lab => ../../lab
	github.com/spillway-go/spillway/load => ../../load
)

// Its zip cannot be had everywhere, and only tests of tests would use it.
exclude golang.org/x/exp v0.0.0-20261011100332-faecfb24eb49
