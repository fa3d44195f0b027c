package orchestrator

import (
	"context"
	"fmt"

	"centurion"
	"centurion/store"
)

// CheckFiles refuses files that no message can have or that the model does not take. The error has centurion.KindUsage.
func CheckFiles(files []centurion.File, m Model) error {
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

// MediaKey is what in the configuration says that a model takes files.
func MediaKey(m centurion.ModelRef) string {
	return fmt.Sprintf("provider.%s.models.%q.modalities in opencode.json, {\"input\": [\"text\", \"image\", \"pdf\"]}", m.Provider, m.ID)
}

// filesFor refuses files that the model of a session does not take. Of a task without a session, and where nobody works on
// missions, it is not known yet which model will read them; it is told of those that it does not take.
func (c *Config) filesFor(ctx context.Context, session string, files []centurion.File) error {
	if len(files) == 0 || session == "" || c.Model == nil {
		return nil
	}
	rec, err := c.Store.Session(ctx, session)
	if err != nil || rec.Model == nil {
		return err
	}
	m, err := c.Model(centurion.ModelRef{Provider: rec.Model.Provider, ID: rec.Model.ID}.String())
	if err != nil {
		return err
	}
	return CheckFiles(files, m)
}

// labels tells files in words.
func labels(files []centurion.File) (out []string) {
	for _, f := range files {
		out = append(out, f.Describe())
	}
	return out
}

// attachText adds a text to the first message of a session, in tx, as a part of its own: the goal stays what the person typed. It is
// synthetic if the host wrote it, and not synthetic if it is that of a file that came with the goal.
func attachText(tx *store.Tx, session, text string, synthetic bool) error {
	if text == "" {
		return nil
	}
	t, err := tx.Tree(session)
	if err != nil {
		return err
	}
	return tx.PutPart(&centurion.Part{ID: centurion.NewID(centurion.PrefixPart), SessionID: session, MessageID: t.Leaf,
		Type: centurion.PartText, Text: "\n\n" + text, Synthetic: synthetic})
}
