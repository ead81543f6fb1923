# How to build, test and measure bulk. The default target lists all targets.

GO          ?= go
VERSION     ?= $(shell git describe --always --dirty 2>/dev/null || echo dev)
STATICCHECK  = honnef.co/go/tools/cmd/staticcheck@v0.8.2
LINTED       = ./... ./testdata/hostile

# Tests that need a server start a private, temporary one, and fail if they cannot. (bulk itself
# warns of a variable that none of its flags has, so the other targets do not have this one.)
test race soak fuzz: export BULK_TEST_POSTGRES = require
test: export BULK_TEST_CHROMIUM = require

.PHONY: help build demo test race soak fuzz lint postgres chromium readme-picture clean bench bench-postgres beam beam-spark beam-flink

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

build: ## build bin/bulk
	$(GO) build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/bulk ./cmd/bulk

demo: build ## run the main job on testdata/ and show the result
	@PATH="$$PWD/bin:$$PATH" ./testdata/demo.sh

test: postgres chromium ## run all tests
	$(GO) test -timeout 40m ./...

# It takes two goroutines to race. The tests of a package that neither starts nor synchronizes
# any, such as canon, find nothing; what it does between goroutines, the tests of its callers do.
# pipeline/beam is another module.
RACED = $$(grep -lrE --include='*.go' --exclude-dir=beam '\bgo func\b|^[[:space:]]*go [a-z]|"golang.org/x/sync|"sync(/atomic)?"|\.Parallel\(\)' . | xargs -n1 dirname | sort -u)

# The names of tests, as patterns, that the detector does not see. The file says why.
UNRACED = $$(grep '^[A-Z]' .ci/unraced | paste -sd '|' -)

# SQLite itself is C translated to Go. It is not checked: the detector would spend most of
# its time there and find nothing. bulk and the SQLite driver are checked.
# -short: tests that try every place, size, format or order try only some of them.
# halt_on_error: without it, a race changes the exit code of a process that a test starts
# only if that code would be 0. atexit_sleep_ms: without it, each such process waits for a
# second before it exits with 0.
race: postgres ## run the tests, the long ones in part or not at all, under the race detector
	GORACE='halt_on_error=1 atexit_sleep_ms=0' $(GO) test -short -race -skip "$(UNRACED)" -gcflags='modernc.org/sqlite/lib=-race=false' -timeout 40m $(RACED)

soak: postgres ## kill runs at many moments, cut their connections, do long sequences of runs
	BULK_SOAK=200 BULK_SEQUENCES=2000 $(GO) test ./cmd/bulk ./pipeline ./sink/postgres -run 'TestKill|CutAt|TestSequences' -timeout 2h -v

FUZZTIME ?= 60
fuzz: ## fuzz each decoder for FUZZTIME seconds (60)
	@GO='$(GO)' .ci/fuzz $(FUZZTIME)

lint: ## check with gofmt, vet, staticcheck and go mod tidy
	@out=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .) && test -z "$$out" || { echo "$$out"; echo 'not formatted'; exit 1; }
	$(GO) vet $(LINTED)
	$(GO) run $(STATICCHECK) $(LINTED)
	$(GO) mod tidy -diff

postgres: ## install a PostgreSQL server with apt-get if there is none
	@command -v initdb >/dev/null || \
	  ls "$$(pg_config --bindir 2>/dev/null)/initdb" /usr/lib/postgresql/*/bin/initdb 2>/dev/null | grep -q . || \
	  { sudo=$$(test $$(id -u) = 0 || echo sudo); $$sudo apt-get update -q && \
	    $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy postgresql; }

chromium: ## install Chromium with apt-get if there is no browser of that kind
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { sudo=$$(test $$(id -u) = 0 || echo sudo); $$sudo apt-get update -q && \
	    $$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends chromium; }

readme-picture: build chromium ## make the picture of README anew
	@PATH="$$PWD/bin:$$PATH" ./testdata/readme/picture.sh

# The results go to benchmarks/results. benchmarks/README.md lists the settings, such as
# BENCH_ROWS, BENCH_COUNT, BENCH_PARTS and BENCH_OLD.
bench: ## measure files and SQLite beside DuckDB and others
	@$(GO) build -o bin/bench ./benchmarks/files && BENCH_GO='$(GO)' exec bin/bench

bench-postgres: postgres ## measure PostgreSQL beside psql, on a private server
	@$(GO) build -o bin/bench-postgres ./benchmarks/postgres && BENCH_GO='$(GO)' exec bin/bench-postgres

# pipeline/beam is a module of its own, which no other target builds: the first build takes some minutes.
beam: ## vet, build bin/bulk-beam and test it, without an engine
	cd pipeline/beam && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) run $(STATICCHECK) ./...
	cd pipeline/beam && $(GO) build -trimpath -ldflags '-s -w -X github.com/linkforge/bulk/pipeline/beam.version=$(VERSION)' -o ../../bin/bulk-beam ./cmd/bulk-beam
	cd pipeline/beam && $(GO) test -count=1 -v ./...

# Each downloads what it needs with Maven, and fails if it cannot.
beam-spark: ## test bulk-beam on Spark, within one Java process
	cd pipeline/beam && engines/with.sh spark $(GO) test -count=1 -v ./...

beam-flink: ## test bulk-beam on Flink, within one Java process
	cd pipeline/beam && engines/with.sh flink $(GO) test -count=1 -v ./...

clean: ## delete what was built
	rm -rf bin
