package retention

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"centurion"
)

// A task of the archive is found by its whole id before those that it begins, by the beginning of one, and in its newest record; a name that
// fits several or none is refused with what to do.
func TestFoundInTheArchive(t *testing.T) {
	t.Parallel()
	k := keeping(t)
	const day = 86_400_000
	put := func(id string, ended int64, reason, title string) {
		t.Helper()
		file, line, err := Line(centurion.Task{ID: id, Mission: "msn_1", Status: centurion.TaskCompleted, Ended: centurion.MillisTime(ended), Reason: reason, Title: title,
			Race: &centurion.Race{Held: true}}, nil)
		if err == nil {
			err = k.Workspace.AppendJSON(file, line)
		}
		if want := Dir + "/tasks-1970-01-0" + string(rune('1'+ended/day)) + ".jsonl"; err != nil || file != want {
			t.Fatalf("%s, want %s: %v", file, want, err)
		}
	}
	put("tsk_1", day, "", "one")
	put("tsk_1", day, "", "repeated")
	put("tsk_1", 1, "", "older")
	put("tsk_12", day, "well", "two")
	put("tsk_2", 2*day-1, "", "three")
	for id, want := range map[string]string{"tsk_1": "one", "1": "one", "12": "two", "tsk_2": "three"} {
		if got, err := FromArchive(k.Workspace, id); err != nil || got.Title != want || !reflect.DeepEqual(got.Race, &centurion.Race{Held: true}) {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
	for id, want := range map[string]string{"1": "from the archive", "12": "well, from the archive"} {
		if got, _ := FromArchive(k.Workspace, id); got.Reason != want {
			t.Errorf("%s: %q", id, got.Reason)
		}
	}
	put("tsk_13", 1, "", "more")
	for id, want := range map[string]*centurion.Error{
		"tsk_": {Op: "find task", Kind: centurion.KindUsage, Msg: "several tasks of the archive begin with tsk_", Hint: "type more of the id"},
		"9":    {Op: "find task", Kind: centurion.KindNotFound, Msg: "there is no task 9 in the archive", Hint: "see: centurion tasks"},
	} {
		if _, err := FromArchive(k.Workspace, id); !reflect.DeepEqual(err, error(want)) {
			t.Errorf("%s: %+v", id, err)
		}
	}
}

// A file of the archive loses what is in it twice and a line that a crash has cut off, and nothing else; a whole one is not written again.
func TestArchiveIsHealed(t *testing.T) {
	t.Parallel()
	one, two, foreign := `{"id":"tsk_1","title":"x"}`, `{"id":"tsk_2"}`, `{"foreign":1}`
	for name, c := range map[string]struct{ lines, want []string }{
		"whole":       {[]string{one, foreign, two}, []string{one, foreign, two}},
		"twice":       {[]string{one, two, foreign, one, two}, []string{one, two, foreign}},
		"cut off":     {[]string{one, two[:5]}, []string{one}},
		"in between":  {[]string{one, two[:5], two}, []string{one, two[:5], two}},
		"both":        {[]string{one, one, two, foreign[:4]}, []string{one, two}},
		"only a part": {[]string{one[:7]}, nil},
	} {
		k := keeping(t)
		const file = Dir + "/tasks-2026-01-02.jsonl"
		path := filepath.Join(k.Workspace.Dir(), filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Join(c.lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		has, err := healArchive(k.Workspace, file)
		after, serr := os.Stat(path)
		b, rerr := os.ReadFile(path)
		got := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		if c.want == nil {
			got = got[1:]
		}
		if err != nil || serr != nil || rerr != nil || has["tsk_1"] != slices.Contains(c.want, one) || has["tsk_2"] != slices.Contains(c.want, two) || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, of %v; %v", name, got, has, err)
		}
		if kept := os.SameFile(before, after); kept != slices.Equal(c.lines, c.want) {
			t.Errorf("%s: written again %v", name, !kept)
		}
	}
}
