package tui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"

	"centurion"
	"centurion/text"
)

// RunPlain prints one line for each fact, without colour and cursor movements: for logs, pipes and screen readers. It returns when the
// events end (see [UntilEnd]), when ctx does, or with the first error of either side. A summary follows the event that ends the
// mission.
func RunPlain(ctx context.Context, w io.Writer, events iter.Seq2[centurion.Event, error]) error {
	return runPlain(ctx, w, &story{board: &Board{}}, events)
}

func runPlain(ctx context.Context, w io.Writer, s *story, events iter.Seq2[centurion.Event, error]) error {
	return writeEach(ctx, w, events, func(e centurion.Event) ([]byte, error) {
		var b bytes.Buffer
		for _, f := range s.apply(e) {
			b.WriteString(f.plainLine() + "\n")
		}
		if e.Type.EndsMission() {
			for _, l := range summary(s.board, theme{}) {
				b.WriteString(l + "\n")
			}
		}
		return b.Bytes(), nil
	})
}

// writeEach prints the representation of each event, if there is one, until the events or ctx end, or with the first error of either
// side.
func writeEach(ctx context.Context, w io.Writer, events iter.Seq2[centurion.Event, error], shown func(e centurion.Event) ([]byte, error)) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
		b, err := shown(e)
		if err != nil {
			return err
		}
		if len(b) == 0 {
			continue
		}
		if _, err := w.Write(b); err != nil {
			return outputError(err)
		}
	}
	return nil
}

func outputError(err error) error {
	return &centurion.Error{Op: "write output", Kind: centurion.KindDisk, Err: err, Hint: "check where the output goes"}
}

// plainLine is the fact in one line with the time of day.
func (f fact) plainLine() string {
	said := f.text
	if f.foot != "" {
		said = f.foot
		f.detail = f.text
	}
	if who := f.who; who != "" && said != "" {
		said = who + ": " + said
	}
	line := f.at.Local().Format("15:04:05") + " " + f.mark + " " + text.Dots(said, f.detail)
	if quote := text.Clean(strings.Join(f.body, " ")); quote != "" {
		line += " · " + text.Cut(quote, maxPlainQuote)
	}
	return line
}

// RunJSON prints one JSON object per line for every event, and nothing else; to omit deltas, filter the events. It returns when the
// events end (see [UntilEnd]), when ctx does, or with the first error of either side.
func RunJSON(ctx context.Context, w io.Writer, events iter.Seq2[centurion.Event, error]) error {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	return writeEach(ctx, w, events, func(e centurion.Event) ([]byte, error) {
		buf.Reset()
		if !json.Valid(e.Data) {
			e.Data = json.RawMessage("{}")
		}
		if err := enc.Encode(e); err != nil {
			return nil, &centurion.Error{Op: "write event", Kind: centurion.KindInternal, Err: err,
				Msg: fmt.Sprintf("event %d does not marshal", cmp.Or(e.Seq, e.After))}
		}
		return text.EscapeJSON(buf.Bytes()), nil
	})
}
