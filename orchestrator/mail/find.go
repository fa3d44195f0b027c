package mail

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"centurion"
	"centurion/orchestrator/agent"
	"centurion/store"
	"centurion/text"
)

// Receiver is an agent of a mission: a session, or a task that may have none yet.
type Receiver struct{ Mission, Session, Task string }

// Find returns the agent that is named by the whole id of its session, task or mission, or by its address or item in the given mission.
// The error has centurion.KindNotFound if there is none.
func Find(ctx context.Context, st *store.Store, mission, to string) (Receiver, error) {
	switch kind, _, _ := strings.Cut(to, "_"); {
	case kind == string(centurion.PrefixTask):
		t, err := st.Task(ctx, to)
		return Receiver{t.Mission, t.Session, t.ID}, err
	case kind == string(centurion.PrefixSession):
		s, err := st.Session(ctx, to)
		return Receiver{s.Metadata.Mission, s.ID, s.Metadata.Task}, err
	case kind == string(centurion.PrefixMission) || mission == "": // without a mission nothing else can be meant
		m, err := st.Mission(ctx, to)
		return Receiver{m.ID, m.Session, ""}, err
	}
	sessions, err := st.Sessions(ctx, mission)
	if err != nil {
		return Receiver{}, err
	}
	tasks, err := st.Tasks(ctx, mission)
	if err != nil {
		return Receiver{}, err
	}
	for _, s := range sessions {
		if strings.Trim(s.Metadata.Address, "/") == strings.Trim(to, "/") {
			return Receiver{mission, s.ID, s.Metadata.Task}, nil
		}
	}
	if t, ok := centurion.TaskNamed(tasks, to); ok && t.Item != "" {
		return Receiver{mission, t.Session, t.ID}, nil
	}
	return Receiver{}, unknown(mission, to, sessions, tasks)
}

// maxNamed is how many receivers an error names.
const maxNamed = 6

func unknown(mission, to string, sessions []centurion.Session, tasks []centurion.Task) error {
	byID := map[string]centurion.Task{}
	var names, living []string
	for _, t := range tasks {
		byID[t.ID] = t
		if t.Item != "" {
			names = append(names, t.Name())
		}
	}
	for _, s := range sessions {
		names = append(names, s.Metadata.Address)
		t, task := byID[s.Metadata.Task]
		if !task || !t.Status.Ended() {
			living = append(living, fmt.Sprintf("%s (%s)", s.Metadata.Address, s.Agent))
		}
	}
	if len(living) > maxNamed {
		living = append(living[:maxNamed], centurion.Count(len(living)-maxNamed, "other"))
	}
	near := centurion.Nearest(to, names)
	return &centurion.Error{Op: "send", Kind: centurion.KindNotFound,
		Msg:  fmt.Sprintf("mission %s has no agent %q; you can write to %s", mission, to, strings.Join(living, ", ")),
		Hint: text.If(near != "", fmt.Sprintf("did you mean %q?", near), "see: centurion tasks "+mission)}
}

// CheckFiles refuses files that no message can have or that the model does not accept. The error has centurion.KindUsage.
func CheckFiles(files []centurion.File, m agent.Model) error {
	if err := centurion.CheckFiles(files); err != nil {
		return err
	}
	for _, f := range files {
		if !m.Media.Takes(f.Mime) {
			return &centurion.Error{Op: "attach " + f.Path, Kind: centurion.KindUsage, Msg: fmt.Sprintf("the model %s takes no %s", m.Ref, f.Mime),
				Hint: "take a model that does (`centurion models` lists them), or describe it in words; if it does, say so: " + MediaKey(m.Ref)}
		}
	}
	return nil
}

// MediaKey is the setting that says which files a model takes.
func MediaKey(m centurion.ModelRef) string {
	return fmt.Sprintf("provider.%s.models.%q.modalities in opencode.json, {\"input\": [\"text\", \"image\", \"pdf\"]}", m.Provider, m.ID)
}

// checkFiles refuses a model that is not there, and files that the model of a session does not take. The model of a task without a session is not known yet: that
// task is told which files it could not be given.
func (d *Desk) checkFiles(ctx context.Context, session string, p Post) error {
	files := p.files()
	if p.Model != "" && d.model != nil {
		m, err := d.model(p.Model)
		return cmp.Or(err, CheckFiles(files, m))
	}
	if len(files) == 0 || session == "" || d.model == nil {
		return nil
	}
	rec, err := d.store.Session(ctx, session)
	if err != nil || rec.Model == nil {
		return err
	}
	m, err := d.model(centurion.ModelRef{Provider: rec.Model.Provider, ID: rec.Model.ID}.String())
	if err != nil {
		return err
	}
	return CheckFiles(files, m)
}
