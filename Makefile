# What to do with bulk. The default target lists the others.

GO          ?= go
VERSION     ?= $(shell git describe --always --dirty 2>/dev/null || echo dev)
STATICCHECK  = honnef.co/go/tools/cmd/staticcheck@v0.8.2
LINTED       = ./... ./testdata/hostile

# Tests that need a server start a private, throw-away one, and fail if they cannot.
export BULK_TEST_POSTGRES = require

.PHONY: help build demo test race soak fuzz lint postgres clean bench bench-postgres

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

build: ## build bin/bulk
	$(GO) build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/bulk ./cmd/bulk

demo: build ## run the main job on testdata/ and show the result
	@PATH="$$PWD/bin:$$PATH" ./testdata/demo.sh

test: postgres ## run all tests
	$(GO) test -timeout 40m ./...

# SQLite itself is C translated to Go: the detector would spend most of the time on it
# and has nothing to find there; bulk and the driver, which use it, are checked.
# -short: tests that try every place, size, format or order one after the other try only
# some. halt_on_error: otherwise the exit code of a process that a test starts shows no
# race unless the code would be 0. atexit_sleep_ms: otherwise each such process waits for
# a second before it ends with 0.
race: postgres ## run the tests, the long ones in part, under the race detector
	GORACE='halt_on_error=1 atexit_sleep_ms=0' $(GO) test -short -race -gcflags='modernc.org/sqlite/lib=-race=false' -timeout 40m ./...

soak: postgres ## kill runs at many moments, calls and chunks; cut connections
	BULK_SOAK=200 $(GO) test ./cmd/bulk ./pipeline ./sink/postgres -run 'TestKill|CutAt' -timeout 2h -v

FUZZTIME ?= 60
fuzz: ## fuzz every decoder, each for FUZZTIME seconds (60)
	@GO='$(GO)' .ci/fuzz $(FUZZTIME)

lint: ## gofmt, vet, staticcheck, and go.mod in order
	@out=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .) && test -z "$$out" || { echo "$$out"; echo 'not formatted'; exit 1; }
	$(GO) vet $(LINTED)
	$(GO) run $(STATICCHECK) $(LINTED)
	$(GO) mod tidy -diff

postgres: ## install the programs of a PostgreSQL server by apt-get where there are none
	@command -v initdb >/dev/null || \
	  ls "$$(pg_config --bindir 2>/dev/null)/initdb" /usr/lib/postgresql/*/bin/initdb 2>/dev/null | grep -q . || \
	  { sudo=$$(test $$(id -u) = 0 || echo sudo); $$sudo apt-get update -q && \
	    $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy postgresql; }

# BENCH_ROWS, BENCH_COUNT, BENCH_PARTS and the other settings: benchmarks/README.md.
bench: ## measure beside DuckDB and others, into benchmarks/results
	@$(GO) build -o bin/bench ./benchmarks/files && BENCH_GO='$(GO)' exec bin/bench

bench-postgres: postgres ## measure beside what psql takes, on a private server
	@$(GO) build -o bin/bench-postgres ./benchmarks/postgres && BENCH_GO='$(GO)' exec bin/bench-postgres

clean: ## remove what was built
	rm -rf bin
