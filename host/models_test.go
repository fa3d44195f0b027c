package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
	"centurion/config"
	"centurion/provider"
)

// LOOP-89: the client of a configured model says how much the model takes and gives.
func TestLimitsOfAModel(t *testing.T) {
	m, err := NewModels(&config.Config{}, config.Resolved{Model: centurion.ModelRef{Provider: "p", ID: "m"}, BaseURL: "http://model.test/v1",
		Limit: config.Limit{Context: 64_000, Output: 8_000}}).Get("")
	if err != nil {
		t.Fatal(err)
	}
	client, ok := m.Client.(withholding).Model.(*provider.Client)
	if !ok {
		t.Fatalf("the client is a %T", m.Client)
	}
	if info := client.Model(); info.String() != "p/m" || info.Context != 64_000 || info.Output != 8_000 || m.Context != 64_000 {
		t.Errorf("the client says %+v, the mission has a window of %d", info, m.Context)
	}
}

// The models of a configuration that was read again wait at the gates of those before, and no key of either is sent or kept.
func TestModelsAgain(t *testing.T) {
	x := newProject(t, nil)
	key := func(value string) *config.Config {
		path := filepath.Join(x.home, ".config/opencode/opencode.json")
		text := `{"provider": {"p": {"options": {"baseURL": "http://model.test/v1", "apiKey": "` + value + `"}}}}`
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return x.config()
	}
	was := NewModels(key("zq7-first-key"), config.Resolved{})
	now := was.again(key("zq7-second-key"), config.Resolved{})
	if now.gates != was.gates || now.Config == was.Config {
		t.Error("its gates or its configuration are not those that it has to have")
	}
	for _, m := range []*Models{was, now} {
		if got := m.keys.Text("zq7-first-key zq7-second-key"); strings.Contains(got, "zq7") {
			t.Errorf("a key is left in %q", got)
		}
	}
}
