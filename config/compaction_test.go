package config

import (
	"strings"
	"testing"

	"centurion"
)

// How much of a model's window stays free is configured under "compaction"; a key that is not known is named with the
// nearest one.
func TestCompactionBuffer(t *testing.T) {
	w := newWorld(t)
	w.global("centurion/config.jsonc", `{"compaction":{"buffer":30000}}`)
	if o := w.load().Own; o.CompactionBuffer != 30_000 {
		t.Errorf("the buffer is %d", o.CompactionBuffer)
	}
	for _, text := range []string{`{"compaction":{"bufer":30000}}`, `{"compaction":{"buffer":0}}`, `{"compaction":true}`} {
		w.project(".opencode/centurion.jsonc", text)
		if _, err := Load(w.opts); centurion.KindOf(err) != centurion.KindConfig || centurion.HintOf(err) == "" && !strings.Contains(err.Error(), "compaction") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
