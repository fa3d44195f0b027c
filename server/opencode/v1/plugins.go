package v1

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"

	"centurion"
	"centurion/orchestrator/mail"
)

// forPlugins is what plugins may do beside reading. What is not among it decides in a person's place: answers to permissions, questions
// and plans, a person's own commands, reverts, the removal of conversations, and what is typed or pressed in a person's terminal.
var forPlugins = []string{"POST /session", "PATCH /session/{id}", "POST /session/{id}/fork", "POST /session/{id}/message", "POST /session/{id}/prompt_async",
	"POST /session/{id}/command", "POST /session/{id}/abort", "POST /session/{id}/summarize", "POST /log", "POST /tui/show-toast"}

// pluginKey marks the context of a plugin's request.
type pluginKey struct{}

// PluginHandler serves the plugins of the project, who are no person: they read what clients read, begin conversations and write to them.
func (p *Project) PluginHandler() http.Handler {
	all, mux := p.Handler(), http.NewServeMux()
	for _, pattern := range append([]string{"GET /"}, forPlugins...) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			dir := Directory(r)
			if rel, err := filepath.Rel(p.State, dir); dir != "" && dir != p.Directory && (p.State == "" || err != nil || !filepath.IsLocal(rel)) {
				Refuse(w, &centurion.Error{Kind: centurion.KindPermission, Msg: dir + " is no directory of this project", Hint: "a plugin reaches its own project only"})
				return
			}
			all.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), pluginKey{}, true)))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		Refuse(w, &centurion.Error{Kind: centurion.KindPermission, Msg: "plugins may not " + strings.ToLower(r.Method) + " " + r.URL.Path, Hint: "that is up to a person"})
	})
	return mux
}

// byPlugin marks a plugin's message for its reader, who might take it for the person's. It refuses one that would continue what a person
// or a limit has stopped.
func (p *Project) byPlugin(ctx context.Context, s centurion.Session, b *Begin) error {
	if ctx.Value(pluginKey{}) == nil {
		return nil
	}
	b.Parts = append(b.Parts, added("A plugin of this project has sent this message, not the person."))
	if s.Metadata.Mission == "" {
		return nil
	}
	m, err := p.API().Mission(ctx, s.Metadata.Mission)
	if err != nil || m.Status.Alive() || mail.Continues(centurion.Mission{Status: m.Status, Reason: m.Reason, Options: m.Options}) {
		return err
	}
	return &centurion.Error{Kind: centurion.KindPermission, Msg: "the mission is " + string(m.Status) + ", and only a person continues it"}
}
