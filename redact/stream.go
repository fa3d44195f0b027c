package redact

import "io"

// Stream replaces keys in a text that comes in pieces: it holds back what may be the beginning of a key.
type Stream struct {
	keep   bool // keys stay as they are; no piece ends in the middle of one
	stages []stage
}

// stage applies one table.
type stage struct {
	t     *table
	text  string // context, then what is held back
	known int    // length of the context
}

// Stream returns a new stream with the keys known by now. With keep, it only prevents that a piece ends within a key.
func (k *Keys) Stream(keep bool) *Stream {
	s := &Stream{keep: keep}
	if k != nil {
		for _, t := range k.tables() {
			s.stages = append(s.stages, stage{t: t})
		}
	}
	return s
}

// Next takes a piece and returns what is certain by now; "" if that is nothing.
func (s *Stream) Next(piece string) string { return s.pass(piece, false) }

// End returns what is still held back. The stream may be used again.
func (s *Stream) End() string { return s.pass("", true) }

func (s *Stream) pass(piece string, final bool) string {
	for i := range s.stages {
		g := &s.stages[i]
		text := g.text + piece
		out, rest := g.t.replace(text, g.known, final)
		if s.keep {
			out = text[g.known:rest]
		}
		piece = out
		g.text, g.known = text[max(rest-context, 0):], min(rest, context)
		if final {
			g.text, g.known = "", 0
		}
	}
	return piece
}

// writer is a [Stream] into another writer.
type writer struct {
	s  *Stream
	to io.Writer
}

// Writer returns a writer that replaces keys in everything written to it. Its Close passes on what is held back, and does not close the
// other writer.
func (k *Keys) Writer(to io.Writer) io.WriteCloser { return &writer{k.Stream(false), to} }

func (w *writer) Write(b []byte) (int, error) { return len(b), w.put(w.s.Next(string(b))) }

func (w *writer) Close() error { return w.put(w.s.End()) }

func (w *writer) put(text string) error {
	if text == "" {
		return nil
	}
	_, err := io.WriteString(w.to, text)
	return err
}
