package tools

import "centurion"

// knows is the metadata key for the file versions, by path, that the session knows after a call. It takes about a hundred bytes.
const knows = "knows"

// note calls Saw, and returns the same for the metadata of the call's result, for [Seen.Recall].
func (s *Seen) note(rel, version string) map[string]any {
	s.Saw(rel, version)
	return map[string]any{rel: version}
}

// known returns the known versions of these files, for the metadata of a call whose versions were recorded with Saw elsewhere.
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

// Recall restores the file versions known from a stored call, made in another process or in the conversation that this one was copied
// from. Failed calls are ignored. Recall calls in their original order. Later changes by others are noticed by Check.
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
