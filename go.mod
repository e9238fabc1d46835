module github.com/spillway-go/spillway

go 1.26.0
