// Package checks evaluates the alerts and the queries of autoscalers over recorded troubles, with the
// engine of Prometheus. It is a module of its own, because the engine is large.
package checks
