# The targets require Go, make, bash and git. Built programs are in Go's caches and in gvrkit/ of the user's cache directory.
SHELL := bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help

MODULES := . bench controllerruntime examples/clusters examples/controller examples/ipamblock examples/manager examples/sharded metrics test/envtest test/envtest/embedded
RACED   := ./... ./controllerruntime/... ./metrics/...
UNIT    := $(RACED) ./bench/...
SERVERS := ./test/envtest/embedded/... ./test/envtest/... ./examples/clusters/... ./examples/controller/... ./examples/ipamblock/... ./examples/manager/... ./examples/sharded/...
# Packages whose tests mostly wait run up to eight of them at a time. Lint has the checks of vet.
PLAIN   := go test -vet=off -shuffle=on -count=1 -timeout=40m
TEST    := $(PLAIN) -race -parallel=8
# Their tests run whole without the race detector, and with it short: it makes them ten times as long.
PURE    := ./internal/wire ./internal/packed ./internal/metaproto
# The programs that measure. Only test-long runs their tests with the race detector.
BENCHES := ./bench/...
# It has an API server in the process of its tests. Only test-long compiles that server with the race detector.
INPROCESS := ./test/envtest/embedded/inprocess
# It measures heap and latency. The race detector makes it ten times as long.
MEASURED := ./test/envtest/load
# Members of a shard without the time to renew their Leases let their slots go, so these tests run alone.
MEMBERS := ./test/envtest/sharded
# The other packages of SERVERS with tests, without the suite that ginkgo runs.
SUITES  = $$(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' $(SERVERS) | grep -v -e 'gvrkit/test/envtest$$' -e /inprocess$$ -e /envtest/load$$ -e /envtest/sharded$$)
LINT    := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZ    := 30s
CHURN   := 10m
SOAK    := 10m
LOAD    := 1m
BENCH   := -out bench/results
# COMPILE compiles packages and their tests, and links nothing, so that two commands can run tests at the same time and compile nothing twice.
# It prints each package that it compiles; COUNT counts these lines.
COMPILE := go list -race -export -deps -test -v -f '{{""}}'
COUNT   := awk '/[ :]/ && !/^go: downloading/ {print} ++n % 100 == 0 {print "  " n " packages compiled or downloaded"; fflush()}'

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' Makefile

build: ## compile everything
	go build $(UNIT) $(SERVERS)

run: ## run an example that watches IPAMBlocks on an embedded API server; needs no cluster
	@echo "make run: compiling the example: a minute with empty caches, then some minutes to build the API server"
	@[ ! -t 1 ] || stay="--duration 10m"; go run ./examples/ipamblock --http :0 $$stay

test: test-unit test-envtest ## run all tests of all modules

test-unit: ## run the tests that need no server
	@echo "test-unit: compiling, and then again with the race detector: some minutes with empty caches"
	@$(PLAIN) $(PURE) $(BENCHES)
	@$(COMPILE) $(RACED) 2>&1 | $(COUNT)
	@$(MAKE) --no-print-directory -j2 units packed-upstream RACED='$(RACED)'

units:
	@$(TEST) -short -p=3 $(RACED)

packed-upstream:
	@echo "test-unit: running client-go's tests also with packed caches"; GVRKIT_PACKED_CACHES=true $(TEST) ./test/upstream

test-envtest: ## find or build API servers, and run the tests that need them
	@echo "test-envtest: building the API servers and the tests: 4 to 12 minutes with empty caches"
	@go run ./test/envtest/cmd/prepare
	@$(COMPILE) ./test/envtest $(SUITES) $(MEMBERS) 2>&1 | $(COUNT)
	@echo "test-envtest: running the tests; the dots are the specs of test/envtest"
	@$(MAKE) --no-print-directory -j2 suite suites
	@$(TEST) -short $(MEMBERS)

# Most of them wait most of the time, so they run at the same time.
suite:
	@cd test/envtest && go tool ginkgo run --race --procs=4 --randomize-all --timeout=40m --no-color .

suites:
	@$(PLAIN) $(INPROCESS) $(MEASURED)
	@$(TEST) -short -p=3 $(SUITES)

test-long: ## run the tests that make test shortens, and controller-runtime's own tests, whole
	@go run ./test/envtest/cmd/prepare
	@$(TEST) ./test/envtest/controllerruntime $(INPROCESS) $(UNIT)
	@$(TEST) $(MEMBERS)

test-packed: export GVRKIT_PACKED_CACHES = true
test-packed: BENCHES :=
test-packed: RACED := ./internal/... ./dynamicinformer ./lister ./metadatainformer ./metadatalister ./packed ./metrics/...
test-packed: test-unit test-envtest ## run the tests of informers with packed caches, also those that need servers

mutants: ## change the library in one way after the other, and print the test that detects it; more than an hour
	@go run ./test/mutants

fuzz: ## fuzz each target for FUZZ=30s
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z]*' . | sed 's|/[^/]*:func | |' | while read -r package target; do \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ) $$package </dev/null || exit 1; done

churn: ## run random operations and faults on API servers against a model, for CHURN=10m on each
	@go run ./test/envtest/cmd/prepare
	@$(TEST) -timeout=0 ./test/envtest/churn -v -churn.duration=$(CHURN) -churn.seed=$$((RANDOM * 32768 + RANDOM))

soak: ## run a factory for SOAK=10m: 200 types, faults, difficult handlers; check what is lost, and what is left
	@go run ./test/envtest/cmd/prepare
	@go test -count=1 -timeout=0 ./test/envtest/soak -v -soak.types=200 -soak.duration=$(SOAK) -soak.seed=$$((RANDOM * 32768 + RANDOM))

load: ## change large objects for LOAD=1m for client-go's informer and for gvrkit's; print heap and latency
	@go test -count=1 -timeout=0 ./test/envtest/load -v -load.blocks=5000 -load.duration=$(LOAD)

bench: ## compare with client-go and controller-runtime; more than an hour, with BENCH=-quick ten minutes
	@echo "bench: compiling: some minutes with empty caches, then some minutes to build the API server"
	@go run ./bench $(BENCH)

lint: ## run golangci-lint; the first run builds it
	$(LINT) run $(UNIT) $(SERVERS)

fmt: ## format the code as lint requires
	$(LINT) fmt $(MODULES)

tidy-check: ## check that go.mod and go.sum of each module are complete, and that the root has no heavy dependencies
	@for m in $(MODULES); do echo "tidy-check: $$m"; (cd $$m && GOWORK=off go build -o /dev/null ./... && GOWORK=off go mod tidy -diff) || exit 1; done
	@echo "tidy-check: test/envtest/assets"; cd test/envtest/assets && GOWORK=off go mod tidy -diff
	@deps=$$(GOWORK=off go list -deps -test ./...) && ! grep -E <<< "$$deps" '^(k8s.io/(apiserver|apiextensions-apiserver|kubernetes)|go.etcd.io|sigs.k8s.io/controller-runtime|github.com/onsi)(/|$$)'

verify: test lint tidy-check ## run all checks that a change must pass

.PHONY: help build run test test-unit units packed-upstream test-envtest suite suites test-packed mutants fuzz churn soak load bench lint fmt tidy-check verify
