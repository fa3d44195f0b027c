package workspace

import (
	"os"
	"runtime"
	"testing"
)

// Whatever comes between the last look at a file and its exchange is found and put back.
func TestSwapIn(t *testing.T) {
	for name, tt := range map[string]struct {
		now     string // "" for no file
		version string
		done    bool
		want    string
	}{
		"as it was":        {"old", VersionOf([]byte("old")), true, "new"},
		"changed":          {"of a person", VersionOf([]byte("old")), false, "of a person"},
		"gone":             {"", VersionOf([]byte("old")), false, ""},
		"still not there":  {"", "", true, "new"},
		"came into being":  {"of a person", "", false, "of a person"},
		"emptied meantime": {"\n", VersionOf([]byte("old")), false, "\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
				t.Skip("files cannot be exchanged here")
			}
			d, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if tt.now != "" {
				if err := d.WriteFile("f", []byte(tt.now), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := writeNew(d, tempName, []byte("new"), filePerm); err != nil {
				t.Fatal(err)
			}
			done, _, err := swapIn(d, "f", tt.version)
			got, _ := d.ReadFile("f")
			if err != nil || done != tt.done || string(got) != tt.want {
				t.Errorf("swapIn = %v, %v, file %q; want %v, %q", done, err, got, tt.done, tt.want)
			}
		})
	}
}

// A file that came into being meanwhile keeps its name.
func TestNameIn(t *testing.T) {
	for now, want := range map[string]string{"": "new", "of a person": "of a person"} {
		d, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if now != "" {
			if err := d.WriteFile("f", []byte(now), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := writeNew(d, tempName, []byte("new"), filePerm); err != nil {
			t.Fatal(err)
		}
		done, err := nameIn(d, "f")
		if got, _ := d.ReadFile("f"); err != nil || done != (now == "") || string(got) != want {
			t.Errorf("nameIn = %v, %v, file %q; want %q", done, err, got, want)
		}
	}
}
