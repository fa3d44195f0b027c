package host

import (
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
