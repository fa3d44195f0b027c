package toast

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Variant is how a toast looks, in OpenCode's words.
type Variant string

// The variants.
const (
	Info    Variant = "info"
	Success Variant = "success"
	Warning Variant = "warning"
	Error   Variant = "error"
)

// Toast is a short notice in the shape of OpenCode's event tui.toast.show.
type Toast struct {
	Title    string  `json:"title,omitempty"`
	Message  string  `json:"message"`
	Variant  Variant `json:"variant"`
	Duration int64   `json:"duration"` // how long it is shown, in milliseconds; never 0, which would mean forever
}

// Preset is the template of a toast. Names in braces in its message stand for values.
type Preset struct {
	Name     string
	Title    string // empty if the message says it
	Message  string
	Variant  Variant
	Duration time.Duration
}

// Presets returns the templates of all toasts. Those that need a person's action are shown longest. A cancelled task is a warning, not
// an error: it was intended.
func Presets() []Preset {
	return []Preset{
		{"mission_started", "Mission started", "{goal}", Info, 4 * time.Second},
		{"mission_resumed", "Mission resumed", "{goal}", Info, 4 * time.Second},
		{"mission_complete", "Mission complete", "{goal}\n{account}", Success, 8 * time.Second},
		{"mission_failed", "Mission failed", "{goal}\n{reason}", Error, 10 * time.Second},
		{"mission_blocked", "Mission blocked", "{goal}\n{reason}", Warning, 10 * time.Second},
		{"mission_paused", "Mission paused", "{goal}\n{reason}", Warning, 8 * time.Second},
		{"mission_cancelled", "Mission cancelled", "{goal}\n{reason}", Warning, 5 * time.Second},
		{"task_started", "Tasks", "{list}", Info, 3 * time.Second},
		{"task_completed", "", "Task completed: {title} ({time})", Success, 4 * time.Second},
		{"task_failed", "", "Task failed: {title} ({time}): {reason}", Error, 8 * time.Second},
		{"task_cancelled", "", "Task cancelled: {title} ({time}): {reason}", Warning, 4 * time.Second},
		{"task_blocked", "", "Task blocked: {title} ({time}): {reason}", Warning, 8 * time.Second},
		{"task_retried", "", "Task tried again: {title} (attempt {attempt}): {reason}", Warning, 4 * time.Second},
		{"all_complete", "All tasks complete", "{summary}", Success, 6 * time.Second},
		{"all_ended", "All tasks ended", "{summary}", Warning, 8 * time.Second},
		{"countdown", "", "Going on in {time}", Info, 2 * time.Second},
		{"needs_you", "Centurion needs you", "{what}\n{goal}", Warning, 10 * time.Second},
		{"budget", "Budget reached", "{limit}: {spent} of {max}", Warning, 8 * time.Second},
		{"agent", "Another agent", "{agent} continues. The next request is paid in full: nothing of the conversation is cached for it.", Info, 6 * time.Second},
		{"retry", "Waiting for the model", "Retry in {time}: {reason}", Warning, 4 * time.Second},
	}
}

// preset returns a template by name. A missing one shows its name, so that a typo is noticed.
func preset(name string) Preset {
	for _, p := range Presets() {
		if p.Name == name {
			return p
		}
	}
	return Preset{Name: name, Message: name, Variant: Error, Duration: time.Second}
}

// Toast fills the template with values given as name, value, name, value. It drops empty lines, and the separator before an empty
// value.
func (p Preset) Toast(values ...string) Toast {
	return Toast{Title: p.Title, Message: cmp.Or(p.text(values...), p.Title), Variant: p.Variant, Duration: p.Duration.Milliseconds()}
}

func (p Preset) text(values ...string) string {
	values = slices.Clone(values)
	for i := 0; i < len(values); i += 2 {
		values[i] = "{" + values[i] + "}"
	}
	filled := strings.NewReplacer(values...)
	var lines []string
	for line := range strings.SplitSeq(p.Message, "\n") {
		if text := strings.TrimSuffix(filled.Replace(line), ": "); text != "" {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, "\n")
}
