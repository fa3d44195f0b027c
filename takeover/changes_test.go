package takeover

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"centurion"
)

// What a mission changed comes from git where it can, and else from what its tasks tell, with the reason.
func TestChangesOf(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("git is missing, which the program needs as well")
	}
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	project := filepath.Join(dir, "p")
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", project, "-c", "user.name=A", "-c", "user.email=a@example.org"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(project, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(project, 0o755); err != nil {
		t.Fatal(err)
	}
	git("init", "-q", "-b", "main")
	write("a.txt", "one\n")
	git("add", ".")
	git("commit", "-qm", "base")
	m := centurion.Mission{Directory: project, Branch: "centurion/m", Base: &centurion.Base{Commit: git("rev-parse", "HEAD")}}
	git("checkout", "-qb", "centurion/m")
	write("a.txt", "one\ntwo\n")
	git("commit", "-qam", "work")
	git("checkout", "-q", "main")

	state := filepath.Join(dir, "state")
	tasks := []centurion.Task{{Landed: []centurion.Landed{{Files: []centurion.FileChange{{Path: "a.txt", Status: "modified", Added: 1}}},
		{Files: []centurion.FileChange{{Path: "a.txt", Status: "modified", Added: 2, Deleted: 1}}}}}, {Files: []string{"b.txt", "a.txt"}}}
	files, why := Changes(t.Context(), state, m, tasks)
	if why != "" || len(files) != 1 || files[0].Added != 1 || len(files[0].Hunks) != 1 {
		t.Errorf("from git: %+v, %q", files, why)
	}
	m.Branch = "centurion/gone"
	files, why = Changes(t.Context(), state, m, tasks)
	if !strings.Contains(why, "cannot be read from git") || len(files) != 2 || files[0].Added != 3 || files[0].Deleted != 1 || files[1].Path != "b.txt" {
		t.Errorf("without the branch: %+v, %q", files, why)
	}
}
