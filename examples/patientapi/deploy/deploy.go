// Package deploy holds the manifests that run the patient API in Kubernetes, as
// kustomize overlays. Its tests render them, check every object against the schemas that
// Kubernetes publishes, and compare what they say with what the service is.
package deploy
