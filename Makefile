# make is the quick loop, make ci exactly what CI does.
.DEFAULT_GOAL := quick
.PHONY: quick ci soak troubles ablation fmt vet layers api test race lint fuzz bench tidy help

FUZZTIME ?= 30s
BENCH    ?= .

quick: fmt vet layers test ## the quick loop: format, vet, layers, tests of the root module

ci: ## exactly what CI does
	bash .ci/run

soak: ## what is about real time, on a quiet machine; NAMES="a b" for some of it, NAMES=-list for the names
	$(if $(filter -list,$(NAMES)),,bash scripts/with-programs.sh )go run ./tools/soak $(if $(NAMES),$(NAMES),-write)

troubles: ## what goes wrong with a service, recorded anew on a quiet machine, with the golden files that depend on it
	go run ./lab/contestants/troubles -write
	go test ./deploy/prometheus/checks -args -update
	go test ./internal/debugpage -run Recorded -args -update

ablation: ## what each rule of the law, the gate and the processors is for: the simulator and the tests without it; RULES=text for some
	go run ./internal/ablation -rules='$(RULES)'

fmt: ## format every module
	gofmt -l -w .

vet: ## go vet, every module
	go vet work

layers: ## imports only point down, and tests of the gate depend on the code alone
	go test ./tools/layers ./tools/gaterule

api: ## renew the list of the exported API, docs/api/current.txt
	go run ./tools/api

test: ## tests of the root module, without the race detector
	go test ./...

race: ## all tests of every module, with the race detector
	go test -race work

lint: ## the pinned linters, every module
	bash scripts/lint.sh

fuzz: ## every fuzz target for FUZZTIME
	bash scripts/fuzz.sh $(FUZZTIME)

bench: ## benchmarks that match BENCH, every module; what has none is not built
	bash scripts/bench.sh '$(BENCH)'

tidy: ## go mod tidy, every module
	@for module in $$(bash scripts/modules.sh); do (cd "$$module" && GOWORK=off go mod tidy) || exit 1; done

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
