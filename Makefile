# It takes Go, make, bash and git. What is built goes to Go's caches and to gvrkit/ in the user's.
SHELL := bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help

MODULES := . bench examples/controller examples/ipamblock metrics test/envtest test/envtest/embedded
UNIT    := ./... ./bench/... ./metrics/...
SERVERS := ./test/envtest/embedded/... ./test/envtest/... ./examples/controller/... ./examples/ipamblock/...
TEST    := go test -race -shuffle=on -count=1 -timeout=40m
LINT    := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
FUZZ    := 30s
BENCH   := -out bench/results
# go build -v names each package that it compiles; this counts them.
COUNT   := awk '/[ :]/ && !/^go: downloading/ {print} ++n % 100 == 0 {print "  " n " packages compiled or downloaded"; fflush()}'

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' Makefile

build: ## compile everything
	go build $(UNIT) $(SERVERS)

run: ## watch IPAMBlocks come and go on a server of its own, no cluster needed
	@echo "make run: compiling the example; with empty caches a minute, then some more for the API server"
	@[ ! -t 1 ] || stay="--duration 10m"; go run ./examples/ipamblock --http :0 $$stay

test: test-unit test-envtest ## all tests of all modules

test-unit: ## tests that need no server
	@echo "test-unit: compiling with the race detector; with empty caches about two minutes"
	@$(TEST) $(UNIT)

test-envtest: ## tests on real API servers, which are found or built first
	@echo "test-envtest: API servers first, for the tests and into them; with empty caches 12 to 25 minutes"
	@go run ./test/envtest/cmd/prepare
	@go build -race -v $(SERVERS) 2>&1 | $(COUNT)
	@echo "test-envtest: running"
	@$(TEST) $(SERVERS)

mutants: ## break the library in one way after the other and show the test that notices
	@go run ./test/mutants

fuzz: ## fuzz each target for FUZZ=30s
	@for t in FuzzParseRef:discovery FuzzDocument:discovery FuzzObject:internal/wire FuzzList:internal/wire FuzzStream:internal/wire; do \
		go test -run '^$$' -fuzz "^$${t%%:*}\$$" -fuzztime $(FUZZ) ./$${t##*:} || exit 1; done

soak: ## let a million leases, and 40 types 200 times, come and go under their informers; half an hour
	@GVRKIT_LEASES=10000 $(TEST) -timeout=30m ./dynamicinformer -run TestLease_ManyAtOnce
	@go run ./test/envtest/cmd/prepare
	@GVRKIT_SOAK=40x200 $(TEST) -timeout=60m ./test/envtest/ -ginkgo.v -ginkgo.focus='come and go by the hundred'

bench: ## compare with client-go and controller-runtime, an hour; BENCH=-quick takes six minutes
	@echo "bench: compiling; with empty caches some minutes, then some more for the API server"
	@go run ./bench $(BENCH)

lint: ## golangci-lint, built the first time
	$(LINT) run $(UNIT) $(SERVERS)

fmt: ## format as lint wants it
	$(LINT) fmt $(MODULES)

tidy-check: ## go.mod and go.sum of each module are complete, and the root's is slim
	@for m in $(MODULES); do echo "tidy-check: $$m"; (cd $$m && GOWORK=off go build -o /dev/null ./... && GOWORK=off go mod tidy -diff) || exit 1; done
	@echo "tidy-check: test/envtest/assets"; cd test/envtest/assets && GOWORK=off go mod tidy -diff
	@deps=$$(GOWORK=off go list -deps -test ./...) && ! grep -E <<< "$$deps" '^(k8s.io/(apiserver|apiextensions-apiserver|kubernetes)|go.etcd.io|sigs.k8s.io/controller-runtime|github.com/onsi)(/|$$)'

verify: test lint tidy-check ## what a change has to pass

.PHONY: help build run test test-unit test-envtest mutants fuzz bench lint fmt tidy-check verify
