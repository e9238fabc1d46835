module github.com/spillway-go/spillway/admissiongrpc

go 1.26.0

require (
	github.com/spillway-go/spillway v0.0.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260414002931-afd174a4e478
	// Before v1.82.1 a client could flood a server with streams that it resets: GHSA-hrxh-6v49-42gf.
	google.golang.org/grpc v1.82.1
	google.golang.org/protobuf v1.36.11
)

require (
	golang.org/x/net v0.53.0 // indirect
	golang.org/x/sys v0.43.0 // indirect
	golang.org/x/text v0.36.0 // indirect
)

replace github.com/spillway-go/spillway => ..
