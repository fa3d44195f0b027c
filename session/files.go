package session

import (
	"slices"

	"centurion"
	"centurion/provider"
)

// textOf is the text of a user message, with the names of its files.
func textOf(m *centurion.Message) string {
	if !slices.ContainsFunc(m.Parts, centurion.Part.Shows) {
		return m.Text()
	}
	named := *m
	named.Parts = slices.Clone(m.Parts)
	for i, p := range named.Parts {
		if p.Shows() {
			named.Parts[i] = centurion.Part{Type: centurion.PartText, Text: p.File.Label()}
		}
	}
	return named.Text()
}

// fileTokens estimates the tokens of a message's files, including those of its calls' results.
func fileTokens(m *centurion.Message) (n int) {
	for _, p := range m.Parts {
		switch {
		case p.Shows():
			n += p.File.Tokens()
		case p.Type == centurion.PartTool && sent(p):
			n += tokensOfFiles(centurion.FilesOf(p.State.Attachments))
		}
	}
	return n
}

func tokensOfFiles(files []centurion.File) (n int) {
	for _, f := range files {
		n += f.Tokens()
	}
	return n
}

// shown omits from a request the files that its model does not accept, and the oldest ones beyond the limit of a request, leaving a
// note in the text. Many are dropped at once, so that requests stay the same in between, and the choice depends only on the history, so
// that it is the same after a restart.
func shown(msgs []provider.Message, takes centurion.Media) []provider.Message {
	if !slices.ContainsFunc(msgs, func(m provider.Message) bool { return len(m.Files) > 0 }) {
		return msgs
	}
	out := slices.Clone(msgs)
	first := 0 // of the messages whose files stay
	count, size := 0, 0
	for i := range out {
		out[i].Files = slices.Clone(out[i].Files)
		out[i].Files = slices.DeleteFunc(out[i].Files, func(f centurion.File) bool {
			no := f.URL != "" || !takes.Takes(f.Mime)
			if no {
				out[i].Text += "\n(" + f.Describe() + " is not shown: this model " + notTaken(f) + ")"
			}
			return no
		})
		n, b := measure(out[i].Files)
		count, size = count+n, size+b
		if count <= centurion.MaxFiles && size <= centurion.MaxFilesBytes {
			continue
		}
		for ; first < i && (count > centurion.MaxFiles/2 || size > centurion.MaxFilesBytes/2); first++ {
			n, b := measure(out[first].Files)
			for _, f := range out[first].Files {
				out[first].Text += "\n(" + f.Describe() + " is not shown any more; read it again if you need it)"
			}
			out[first].Files = nil
			count, size = count-n, size-b
		}
	}
	return out
}

func notTaken(f centurion.File) string {
	if f.Mime == centurion.MimePDF {
		return "takes no PDF"
	}
	return "takes no images"
}

func measure(files []centurion.File) (count, size int) {
	for _, f := range files {
		size += len(f.Data)
	}
	return len(files), size
}

// attach adds the files returned by a tool to its call's message.
func attach(p *centurion.Part, files []centurion.File) {
	for _, f := range files {
		p.State.Attachments = append(p.State.Attachments, centurion.FilePart(p.SessionID, p.MessageID, f))
	}
}
