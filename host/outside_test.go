package host

import (
	"io"
	"net"
	"strings"
	"testing"

	"centurion"
	"centurion/config"
	"centurion/provider"
	"centurion/sandbox"
)

// Issue "Plugin host", point 7: an agent from outside gets the variables and connects to the hosts that its definition names, and no others.
func TestOutsideIsGiven(t *testing.T) {
	t.Setenv("CODER_KEY", "sk-coder-0123456789")
	t.Setenv("OTHER_KEY", "sk-other-0123456789")
	cfg := &config.Config{Own: config.Own{Agents: map[string]config.OwnAgent{"coder": {ACP: []string{"sh", "-c", "echo $0 $CODER_KEY $OTHER_KEY; pwd; cat", "it's"}, Env: []string{"CODER_KEY", "NONE"}}}}}
	models := NewModels(cfg, config.Resolved{})
	dir := t.TempDir()
	m, err := models.Get("acp/coder")
	if err != nil || m.Outside == nil || m.Price != nil || m.Ref.String() != "acp/coder" {
		t.Fatalf("%+v, %v", m, err)
	}
	if _, err := m.Outside.Start(t.Context(), centurion.Place{Dir: dir}); centurion.KindOf(err) != centurion.KindInternal {
		t.Errorf("it starts without a host: %v", err)
	}
	models = models.again(cfg, config.Resolved{})
	models.runner = &sandbox.Runner{}
	if m, err = models.Get("acp/coder"); err != nil {
		t.Fatal(err)
	}
	p, err := m.Outside.Start(t.Context(), centurion.Place{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(p, "hello\n"); err != nil {
		t.Error(err)
	}
	want := "it's sk-coder-0123456789\n" + dir + "\nhello\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(p, got); err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
	p.Kill()
	if err := p.Wait(); centurion.KindOf(err) != centurion.KindCancelled {
		t.Errorf("it ended with %v", err)
	}
	if _, err := models.Get("acp/nobody"); centurion.KindOf(err) != centurion.KindConfig || !strings.Contains(err.Error(), "agent.nobody.acp") {
		t.Errorf("an unknown one: %v", err)
	}
	for _, err := range m.Client.Stream(t.Context(), provider.Request{}) {
		if centurion.KindOf(err) != centurion.KindUsage {
			t.Errorf("it has a model: %v", err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for host, ok := range map[string]bool{"127.0.0.1": true, "localhost": false} {
		_, port, _ := net.SplitHostPort(l.Addr().String())
		conn, err := connectOutside(config.Outside{Name: "coder", Hosts: []string{"127.0.0.1"}})(t.Context(), net.JoinHostPort(host, port))
		if (err == nil) != ok {
			t.Errorf("%s: %v", host, err)
		}
		if err == nil {
			err = conn.Close()
		}
		if !ok && centurion.KindOf(err) != centurion.KindPermission {
			t.Errorf("%s: %v", host, err)
		}
	}
}
