package trial

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// report is the result of a run of trials, as JSON.
type report struct {
	Seed    uint64   `json:"seed"`
	Scale   string   `json:"scale"` // quick or full
	Machine machine  `json:"machine"`
	Seconds float64  `json:"seconds"` // of all trials, some of which run concurrently
	Trials  []result `json:"trials"`
}

// machine says where the figures were measured.
type machine struct {
	CPUs    int     `json:"cpus"`
	Go      string  `json:"go"`
	OS      string  `json:"os"`
	FsyncMS float64 `json:"fsync_ms"` // median time of one 4 KiB write with fsync in the scratch directory
}

// result is the result of one trial.
type result struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Goal     string   `json:"goal"`
	OK       bool     `json:"ok"`
	Figures  figures  `json:"figures"`
	Failures []string `json:"failures"`
	Seconds  float64  `json:"seconds"`
	Seed     uint64   `json:"seed"`
}

// figures are named values in order of their discovery. In JSON they are an object.
type figures []figure

type figure struct {
	Name  string
	Value any
}

func (f figures) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, one := range f {
		name, err := json.Marshal(one.Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(one.Value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (f *figures) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // 0.10 stays what it is
	if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
		return errors.Join(fmt.Errorf("figures are an object, not %v", tok), err)
	}
	*f = nil
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value any
		if err := d.Decode(&value); err != nil {
			return err
		}
		*f = append(*f, figure{fmt.Sprint(name), value})
	}
	return nil
}

// String joins the figures for a table.
func (f figures) String() string {
	var all []string
	for _, one := range f {
		all = append(all, fmt.Sprintf("%s %v", one.Name, one.Value))
	}
	return strings.Join(all, " · ")
}

// word says how a trial ended. Not possible here means failed: a trial that did not run proves nothing.
func (r result) word() string {
	switch {
	case r.OK:
		return "ok"
	case len(r.Failures) > 0 && strings.HasPrefix(r.Failures[0], notPossible):
		return notPossible
	}
	return "FAILED"
}

const notPossible = "not possible here"

// replay returns the command that repeats one trial.
func (r report) replay(id string) string {
	return fmt.Sprintf("go run ./cmd/trial -%s -seed %d -run %s", r.Scale, r.Seed, id)
}

// table writes the table for the end of a run.
func (r report) table(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, one := range r.Trials {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%.1f s\t%s\n", one.ID, one.Name, one.word(), one.Seconds, one.Figures)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for _, one := range r.Trials {
		for _, failure := range one.Failures {
			fmt.Fprintf(w, "\n%s %s\n", one.ID, failure)
		}
		if !one.OK {
			fmt.Fprintf(w, "try it again: %s\n", r.replay(one.ID))
		}
	}
	_, err := fmt.Fprintf(w, "\nin all %.0f s · seed %d · %s · %d CPUs · %s · %s · fsync %.2f ms\n", r.Seconds, r.Seed, r.Scale, r.Machine.CPUs, r.Machine.OS, r.Machine.Go, r.Machine.FsyncMS)
	return err
}

// The marks around the table of results in a Markdown file.
const (
	pageFrom = "<!-- reliability -->\n"
	pageTo   = "<!-- /reliability -->"
)

// markdown returns the table of the page on reliability.
func (r report) markdown() string {
	var b strings.Builder
	b.WriteString("| | trial | must | measured | |\n|---|---|---|---|---|\n")
	for _, one := range r.Trials {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", one.ID, cell(one.Name), cell(one.Goal), cell(one.Figures.String()), one.word())
	}
	fmt.Fprintf(&b, "\n`cmd/trial -%s -seed %d` on %d CPUs, %s, %s, %.2f ms for an fsync.\n", r.Scale, r.Seed, r.Machine.CPUs, r.Machine.OS,
		r.Machine.Go, r.Machine.FsyncMS)
	return b.String()
}

// cell keeps a text inside its cell.
func cell(s string) string {
	return cmp.Or(strings.NewReplacer("|", "\\|", "\n", " ").Replace(s), " ")
}

// between splits a Markdown file at its marks: before including the first one, the table, and after including the last one.
func between(text string) (before, table, after string, found bool) {
	before, rest, ok := strings.Cut(text, pageFrom)
	table, after, closed := strings.Cut(rest, pageTo)
	return before + pageFrom, table, pageTo + after, ok && closed
}

// readReport reads the output of -json.
func readReport(file string) (report, error) {
	var r report
	b, err := os.ReadFile(file)
	if err != nil {
		return r, err
	}
	err = json.Unmarshal(b, &r)
	return r, err
}

// rewritePage puts the table of a JSON file into a Markdown file.
func rewritePage(page, from string) error {
	r, err := readReport(from)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, _, after, found := between(string(b))
	if !found {
		return fmt.Errorf("%s has no %s and %s", page, strings.TrimSpace(pageFrom), pageTo)
	}
	return os.WriteFile(page, []byte(before+r.markdown()+after), 0o644)
}

// writeReport writes the JSON file.
func writeReport(file string, r report) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}
