# Heddle's table of contents. `make help` prints it.
#
# Every C folder brings a module.mk with its own targets, and appends its hand-written files to C_SOURCES and C_HEADERS.
# Paths are relative to this folder. Nothing is downloaded but pinned Go modules and Debian packages.

.DEFAULT_GOAL := help

# V=1 shows every command.
ifndef V
MAKEFLAGS += --silent
endif
MAKEFLAGS += --no-print-directory

BUILD ?= build
GO ?= go
ifeq ($(origin CC),default)
CC = gcc
endif
CFLAGS ?= -O2 -g
CFLAGS_STRICT = -std=c11 -Wall -Wextra -Werror -Wshadow -Wconversion -Wvla -Wmissing-prototypes \
	-Wstrict-prototypes -fvisibility=hidden -fno-common
# The vendor's header marks old calls as deprecated; the binding that includes it must still bind them.
export CGO_CFLAGS ?= -O2 -g -Wno-deprecated-declarations
# The linter is compiled from .tools/go.mod at its first use; GOLANGCI=path uses a binary that is there already.
GOLANGCI ?= $(GO) tool -modfile=.tools/go.mod golangci-lint
# One version for all parts: heddle doctor tells when they differ.
VERSION ?= 0.1.0
HEDDLE_VERSION = $(VERSION)
GO_LDFLAGS = -s -w -X main.released=$(VERSION)
# How long `make fuzz` spends on each target.
T ?= 30s
# Which device `make demo` uses: soft or real.
GPU ?= soft

C_SOURCES :=
C_HEADERS :=
MODULES := $(sort $(wildcard interpose/module.mk interpose/*/module.mk tests/*/module.mk tests/*/*/module.mk))
include $(MODULES)
# A folder's C tests run as the target that its module.mk defines.
C_TESTS = test-interpose test-softgpu test-play

NEED = .ci/need
NEED_BUILD = gcc make libc6-dev
NEED_TEST = $(NEED_BUILD) binutils clang libclang-rt musl-tools qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross \
	python3 python3-venv
NEED_CHECK = $(NEED_TEST) clang-format clang-tidy cppcheck shellcheck git
REPORT = $(BUILD)/bin/report

##@ Build

.PHONY: build
build: need-build interpose softgpu play device-probe binaries ## everything: heddled, heddle, interposer, software GPU, player

.PHONY: binaries
binaries: ## heddled and heddle (Go)
	@echo "building heddled and heddle"
	@mkdir -p $(BUILD)/bin
	$(GO) build -trimpath -ldflags '$(GO_LDFLAGS)' -o $(BUILD)/bin/heddled ./cmd/heddled
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(GO_LDFLAGS)' -o $(BUILD)/bin/heddle ./cmd/heddle

##@ See it work

.PHONY: demo
demo: build ## an inference service beside a training job, alone / shared / under heddled (GPU=real for a real one)
	$(BUILD)/bin/heddle demo --gpu $(GPU)

##@ Test

.PHONY: test
test: need-test ## every test, Go and C; ends with what passed, what was skipped and why (under 25 minutes on 2 cores)
	@rm -f $(BUILD)/test/report.jsonl
	@$(MAKE) build $(REPORT)
	@failed=0; \
	for part in test-c test-go integration device-check; do \
		$(MAKE) $$part || failed=1; \
	done; \
	$(REPORT) sum && exit $$failed

.PHONY: test-go
test-go: build test-client $(REPORT) ## Go tests of single packages, with the race detector
	@$(REPORT) go "Go, race detector" -race -timeout 15m \
		$$($(GO) list ./... | grep -v -e /tests/integration -e /tests/crash -e /tests/device)

.PHONY: test-c
test-c: $(REPORT) ## C tests: plain, sanitizers, clang, musl, arm64 under qemu-user
	@for part in $(C_TESTS); do $(REPORT) run "C, $$part" $(MAKE) -j$$(nproc) $$part || failed=1; done; \
	exit $${failed:-0}

.PHONY: integration
integration: build test-client $(REPORT) ## heddled, real processes, interposer and software GPU together; 50 kills
	@$(REPORT) go "integration" -race -p 1 -timeout 15m ./tests/integration/... ./tests/crash/...

.PHONY: crash
crash: build test-client $(REPORT) ## 1,000 kills at random points, and failpoints: who was hurt, what was left behind
	@HEDDLE_CRASH_KILLS=1000 $(GO) test -race -count=1 -p 1 -timeout 30m -v ./tests/crash/...

.PHONY: fuzz
fuzz: ## every fuzz target, Go and C, for T=30s each
	@echo "== the gate in Go and in C, ten million questions"
	@HEDDLE_GATE_ROUNDS=10000000 $(GO) test -count=1 -timeout 30m -run TestGateInGoAndInCAgree ./runtime/sched
	@.ci/fuzz $(T)
	@$(MAKE) --no-print-directory fuzz-interpose fuzz-softgpu T=$(T)

##@ Measure

.PHONY: bench
bench: bench-launch bench-gate bench-attach ## all budgets; one JSON file each under build/bench

##@ Judge

.PHONY: check
check: need-check lint format-check deps c-check script-check generate-check ## all that is judged without running the product

.PHONY: lint
lint: ## golangci-lint as pinned in .tools/go.mod, go vet, tidy go.mod
	$(GO) vet ./...
	$(GOLANGCI) run ./...
	$(GO) mod tidy -diff

.PHONY: deps
deps: ## import tiers, bans, includes, folder table
	$(GO) test -count=1 ./tests/deps

.PHONY: format
format: ## rewrite Go and C sources in the house's format
	$(GOLANGCI) fmt ./...
	clang-format -i $(sort $(C_SOURCES) $(C_HEADERS))

.PHONY: format-check
format-check:
	clang-format --dry-run --Werror $(sort $(C_SOURCES) $(C_HEADERS))

.PHONY: c-check
c-check: ## C with -Werror under gcc and clang, then clang-tidy and cppcheck
	@.ci/c-check $(sort $(C_SOURCES))

.PHONY: script-check
script-check:
	@.ci/script-check

##@ Generate

.PHONY: generate
generate: ## contract mirror, symbol tables, protobuf, GPU models, command documentation
	@.ci/generate

.PHONY: generate-check
generate-check: ## regenerate, fail if anything changed
	@.ci/generate --check

.PHONY: docs
docs: ## man pages and Markdown of the command line, from the program itself
	@.ci/generate docs

##@ Real hardware

.PHONY: device-bundle
device-bundle: build ## pack what tests/device/run needs on a machine without Go and network (at most 64 MiB)
	@tests/device/bundle $(BUILD)

.PHONY: device-test
device-test: build ## run tests/device/run on this machine's GPU, or skip with a reason
	@tests/device/run || [ $$? -eq 77 ]

.PHONY: device-check
device-check: build $(REPORT)
	@$(REPORT) run "device script, software GPU" tests/device/selftest

##@ All

.PHONY: ci
ci: ## what the judging machine runs
	@.ci/run

.PHONY: clean
clean: ## remove everything that was built
	rm -rf $(BUILD)

.PHONY: help
help:
	@awk 'BEGIN { FS = ":.*## " } \
		FILENAME != "Makefile" && !parts++ { print "\nSingle parts" } \
		/^##@ / { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: need-build need-test need-check
need-build:
	@$(NEED) $(NEED_BUILD)
	@$(NEED) --go
need-test: need-build
	@$(NEED) $(NEED_TEST)
need-check:
	@$(NEED) $(NEED_CHECK)
	@$(NEED) --go

.PHONY: $(REPORT)
$(REPORT):
	@mkdir -p $(@D)
	@$(GO) build -o $@ ./tests/report
