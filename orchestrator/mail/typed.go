package mail

import (
	"context"
	"slices"
	"strings"

	"centurion"
	"centurion/session"
	"centurion/store"
)

// Typed lets plugins change the parts of a message that a slash command made, and returns them with the names of those that did. Of the parts
// their texts count; files stay.
func Typed(ctx context.Context, hooks centurion.Hooks, who centurion.Hooked, typed *centurion.Typed, parts []centurion.Part) ([]centurion.Part, []string) {
	if typed == nil {
		return parts, nil
	}
	in := struct {
		centurion.Hooked
		centurion.Typed
	}{who, *typed}
	type message struct {
		Parts []centurion.Part `json:"parts"`
	}
	out, by, err := centurion.RunHook(ctx, hooks, centurion.HookCommand, in, message{parts})
	isText := func(p centurion.Part) bool { return p.Type == centurion.PartText }
	texts := slices.DeleteFunc(slices.Clone(out.Parts), func(p centurion.Part) bool { return !isText(p) || strings.TrimSpace(p.Text) == "" })
	size := 0
	for i := range texts {
		texts[i] = centurion.Part{Type: centurion.PartText, Text: texts[i].Text, Synthetic: texts[i].Synthetic}
		size += len(texts[i].Text)
	}
	if err != nil || len(by) == 0 || len(texts) == 0 || size > MaxPost {
		return parts, nil
	}
	return append(texts, slices.DeleteFunc(slices.Clone(parts), isText)...), by
}

// keep stores a message as plugins want it.
func (d *Desk) keep(ctx context.Context, p Post, to Receiver, put func(*store.Tx, Post, Receiver) (Posted, error)) (got Posted, err error) {
	by, err := d.typed(ctx, &p, to)
	if err != nil {
		return got, err
	}
	err = d.store.Update(ctx, func(tx *store.Tx) (err error) {
		if got, err = put(tx, p, to); err == nil {
			err = acted(tx, got, by)
		}
		return err
	})
	return got, err
}

// typed is [Typed] for a message to a session.
func (d *Desk) typed(ctx context.Context, p *Post, to Receiver) (by []string, err error) {
	if p.Typed == nil || d.Hooks == nil || to.Session == "" {
		return nil, nil
	}
	rec, err := d.store.Session(ctx, to.Session)
	if err != nil {
		return nil, err
	}
	parts := p.Parts
	if len(parts) == 0 {
		parts = session.Texts(p.Text, p.Files...)
	}
	if parts, by = Typed(ctx, d.Hooks, rec.HookedBy(), p.Typed, parts); len(by) > 0 {
		p.Parts = parts
	}
	return by, nil
}

// acted notes in the journal, in tx, which plugins have changed a message that a command made.
func acted(tx *store.Tx, to Posted, by []string) error {
	if len(by) == 0 {
		return nil
	}
	rec, err := tx.Session(to.Session)
	if err != nil {
		return err
	}
	return session.Acted(tx, &rec, centurion.HookCommand, by, "")
}
