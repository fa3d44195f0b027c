package tools

import (
	"context"
	"fmt"
	"sync"

	"centurion"
)

// Seen records the version of each file that a session last read or wrote. A file with an unknown version is not edited. The zero Seen
// is empty and ready to use; it is safe for concurrent use.
type Seen struct {
	mu       sync.Mutex
	versions map[string]string
}

// Saw records that the session knows the file at this version; "" means that the file did not exist.
func (s *Seen) Saw(rel, version string) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.versions == nil {
		s.versions = map[string]string{}
	}
	s.versions[rel] = version
}

// Check returns nil if the session may replace the file with the current version ("" if there is none). The error has
// [centurion.KindUsage] if the session never read the file and [centurion.KindConflict] if it was changed, created or deleted since.
func (s *Seen) Check(rel, current string) error {
	known, ok := "", false
	if s != nil {
		s.mu.Lock()
		known, ok = s.versions[rel]
		s.mu.Unlock()
	}
	switch {
	case !ok && current == "", ok && known == current:
		return nil
	case !ok:
		return &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("%s exists and you have not read it", rel),
			Hint: "read it first with the tool read, so that nothing of it is lost unseen"}
	case current == "":
		return &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("%s was deleted since you read it", rel),
			Hint: "look with ls or git what happened; read it again if you mean to create it anew"}
	case known == "":
		return &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("%s was created by someone else meanwhile", rel),
			Hint: "read it first"}
	}
	return &centurion.Error{Kind: centurion.KindConflict, Msg: fmt.Sprintf("%s has changed since you read it; read it again", rel),
		Hint: "a command, another's merged work or your own of before may have changed it: make your change in what stands there now"}
}

// Writers lets one session at a time replace a file, so that no other session of the host writes between its version check and its
// write. All sessions of a host share one value. The zero Writers is ready to use, and a nil one locks nothing.
type Writers struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the holder is done
}

// hold waits for the path's lock and takes it; release unlocks it.
func (w *Writers) hold(ctx context.Context, path string) (release func(), err error) {
	if w == nil {
		return func() {}, nil
	}
	for {
		w.mu.Lock()
		busy, ok := w.held[path]
		if !ok {
			if w.held == nil {
				w.held = map[string]chan struct{}{}
			}
			done := make(chan struct{})
			w.held[path] = done
			w.mu.Unlock()
			return func() {
				w.mu.Lock()
				delete(w.held, path)
				w.mu.Unlock()
				close(done)
			}, nil
		}
		w.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ended(ctx, "write")
		}
	}
}

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
