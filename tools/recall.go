package tools

import "centurion"

// knows is where the metadata of a result says which version of which file the session knows from then on, a version by
// each path. It takes about a hundred bytes.
const knows = "knows"

// note is Saw, and returns the same for the metadata of the call's result, so that [Seen.Recall] finds it again.
func (s *Seen) note(rel, version string) map[string]any {
	s.Saw(rel, version)
	return map[string]any{rel: version}
}

// known returns what is known of these files, for the metadata of a call that others have told Saw about.
func (s *Seen) known(paths ...string) map[string]any {
	out := map[string]any{}
	if s == nil {
		return out
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range paths {
		if v, ok := s.versions[p]; ok {
			out[p] = v
		}
	}
	return out
}

// Recall takes over what a stored call has told the session of files, in another process or in the conversation that this
// one was copied from. What did not end well has told nothing. Calls are recalled in the order in which they were made.
// Whether somebody has changed a file since is for Check to find.
func (s *Seen) Recall(call centurion.Part) {
	if call.State == nil || call.State.Status != centurion.ToolCompleted {
		return
	}
	files, _ := call.State.Metadata[knows].(map[string]any)
	for path, version := range files {
		if v, ok := version.(string); ok {
			s.Saw(path, v)
		}
	}
}
