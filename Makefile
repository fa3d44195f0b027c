# The nine targets of this project. `make check` needs Go, git and the Go module proxy, nothing else; `make compat` needs Node, too.
export GORACE = atexit_sleep_ms=10
# SQLite is C that was translated to Go. Its memory is no Go value, so that the race detector has nothing to find in it, and with
# it takes more than half of the tests' time. All Go code around it, its driver included, is looked at.
RACE = -race -gcflags=modernc.org/sqlite/lib=-race=false
STATICCHECK = go tool -modfile=tools.mod staticcheck

.PHONY: build test check lint compat fuzz bench dist clean

build:
	CGO_ENABLED=0 go build -trimpath -o bin/ ./cmd/centurion

test:
	go test ./...

lint:
	test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go vet ./...
	GOOS=darwin go vet ./...
	GOOS=windows go vet ./...
	go fix -diff ./...
	$(STATICCHECK) ./...
	go test -count=1 -run '^(TestRequirements|TestLayers)$$' .

check: lint
	go test $(RACE) -timeout 30m ./...
	CGO_ENABLED=0 GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/centurion
	CGO_ENABLED=0 GOOS=windows GOARCH=amd64 go build -o /dev/null ./cmd/centurion
	CGO_ENABLED=0 go build -o /dev/null ./cmd/centurion

compat: build
	CENTURION=bin/centurion compat/run.sh centurion
	CENTURION=bin/centurion compat/tui.sh centurion
	compat/mcp/run.sh
	CENTURION=bin/centurion compat/acp.sh
	compat/plugins.sh
	CENTURION=bin/centurion compat/mcp/server.sh

fuzz:
	scripts/fuzz.sh

bench:
	scripts/bench.sh

dist:
	scripts/dist.sh

clean:
	rm -rf bin dist
