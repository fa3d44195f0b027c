package store

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"centurion"
)

// What the journal of an older schema knows of a mission and its tasks is what agents did: a person's merge is none of it, and a
// rejection keeps as many files as a new one would.
func TestDecisionsOfTheJournal(t *testing.T) {
	t.Parallel()
	var files []string
	for i := range centurion.MaxRejectionFiles + 3 {
		files = append(files, fmt.Sprintf("%q", fmt.Sprint("f", i)))
	}
	d := decisions{map[string][]centurion.Rejection{}, map[string][]centurion.Landed{}, map[string]string{}, map[string]bool{}}
	for i, r := range [][3]string{
		{"merge.done", "", `{"commit":"c1"}`},
		{"merge.done", "tsk_1", `{"commit":"c2"}`},
		{"merge.done", "", `{"commit":"mine","person":true}`},
		{"merge.done", "", `{"commit":"c3"}`},
		{"task.returned", "tsk_1", `{"cause":"check","files":[` + strings.Join(files, ",") + `]}`},
		{"task.returned", "tsk_1", `{"cause":"conflict","person":true}`},
		{"task.returned", "tsk_1", `no JSON`},
	} {
		d.note(&row{cols: []sql.RawBytes{fmt.Append(nil, 1000*i), []byte(r[0]), []byte("msn_1"), nil, []byte(r[1]), []byte(r[2])}})
	}
	landed := d.landings["msn_1"]
	if len(landed) != 2 || landed[0].Commit != "c1" || landed[0].Before != "" || landed[1].Commit != "c3" || landed[1].Before != "c2" || landed[1].Time.Millis() != 3000 {
		t.Errorf("landed: %+v", landed)
	}
	if got := d.rejections["tsk_1"]; len(got) != 1 || len(got[0].Files) != centurion.MaxRejectionFiles {
		t.Errorf("rejections: %+v", got)
	}
	if !d.merged["c2"] || d.merged["mine"] || d.tips["msn_1"] != "c3" {
		t.Errorf("merged: %v, tips %v", d.merged, d.tips)
	}
	lacks := func(id, data string) string {
		return d.lacks(&row{cols: []sql.RawBytes{[]byte(id), []byte("x"), []byte(data)}})
	}
	for _, tt := range []struct{ id, data, want string }{
		{"msn_1", `{}`, `,"landed":[{`},
		{"msn_1", `{"landed":[{"commit":"c1"}]}`, ""},
		{"msn_2", `{}`, ""},
		{"tsk_1", `{}`, `,"rejections":[{`},
		{"tsk_1", `{"rejections":[]}`, ""},
		{"tsk_9", `{"status":"merging","landed":[{"commit":"c8"},{"commit":"c9"}]}`, `,"merging":"c9"`},
		{"tsk_9", `{"status":"merging","landed":[{"commit":"c8"},{"commit":"c2"}]}`, ""},
		{"tsk_9", `{"status":"running","landed":[{"commit":"c9"}]}`, ""},
		{"tsk_9", `{"status":"merging","merging":"c9","landed":[{"commit":"c9"}]}`, ""},
		{"tsk_1", `no JSON`, ""},
	} {
		if got := lacks(tt.id, tt.data); tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s %s lacks %q, want %q", tt.id, tt.data, got, tt.want)
		}
	}
}
