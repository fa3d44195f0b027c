package page

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"centurion"
	"centurion/server"
	"centurion/store"
	"centurion/text"
)

// listed are the missions of a project.
type listed struct {
	Name, Directory string
	Missions        []row
	Older           int    // that are left out
	Wrong           string // why it cannot be read
}

// row is a mission in a list.
type row struct {
	server.Mission
	Word, Tone, Facts string
}

// mostRows limits the missions of a project in the list.
const mostRows = 200

// list shows the missions of all projects, and all asks.
func (s visit) list(w http.ResponseWriter, r *http.Request) {
	if path, _, _ := strings.Cut(r.RequestURI, "?"); !strings.HasSuffix(path, "/") { // the links of the page are relative
		http.Redirect(w, r, path+"/", http.StatusSeeOther)
		return
	}
	var v struct {
		Asks     []asked
		Projects []listed
	}
	for _, p := range s.projects {
		one := listed{Name: filepath.Base(p.Directory), Directory: p.Directory}
		missions, err := p.API().Missions(r.Context())
		var asks []store.Ask
		if err == nil {
			asks, err = p.API().Asks(r.Context())
		}
		if err != nil {
			one.Wrong = sentence(err)
		}
		for _, a := range asks {
			i := slices.IndexFunc(missions, func(m server.Mission) bool { return m.ID == a.Mission })
			if i >= 0 {
				v.Asks = append(v.Asks, s.asked(a, missions[i], ".", "mission/"+a.Mission))
			}
		}
		missions = slices.DeleteFunc(missions, func(m server.Mission) bool { return !m.Removed.IsZero() })
		slices.SortStableFunc(missions, func(a, b server.Mission) int { return cmp.Compare(urgency(a), urgency(b)) })
		one.Older = max(0, len(missions)-mostRows)
		for _, m := range missions[:len(missions)-one.Older] {
			one.Missions = append(one.Missions, rowOf(m))
		}
		v.Projects = append(v.Projects, one)
	}
	s.write(w, shown{Title: "Centurion", Waits: len(v.Asks), Live: "live", Status: http.StatusOK, Body: "list", What: v})
}

// urgency orders missions: first those that wait for a person, then those that run.
func urgency(m server.Mission) int {
	switch {
	case m.Asks > 0 || m.Status == centurion.MissionBlocked:
		return 0
	case m.Status.Alive():
		return 1
	}
	return 2
}

func rowOf(m server.Mission) row {
	all := 0
	for _, n := range m.Tasks {
		all += n
	}
	done := m.Tasks[string(centurion.TaskCompleted)]
	x := row{Mission: m, Word: m.Status.Word(m.Evidence, m.Options.Profile), Tone: tones()[string(m.Status)]}
	x.Facts = text.Dots(text.When(all > 0, fmt.Sprintf("%d of %s done", done, centurion.Count(all, "task"))),
		text.When(m.DurationMS > 0, text.Span(text.Millis(m.DurationMS))), text.Cost(m.Usage))
	if x.Word != string(m.Status) {
		x.Tone = "fair"
	}
	return x
}

// tones are the colours of states: good, fair, none or bad.
func tones() map[string]string {
	out := map[string]string{}
	for tone, states := range map[string]string{"good": "completed", "fair": "planning running verifying merging", "none": "paused queued waiting cancelled", "bad": "failed blocked"} {
		for state := range strings.FieldsSeq(states) {
			out[state] = tone
		}
	}
	return out
}

// card is a task on the board.
type card struct {
	server.Task
	Tone, Took, Cost string
	Waits            bool // for a person
}

// mission shows one mission.
func (s visit) mission(w http.ResponseWriter, r *http.Request) {
	ctx, id := r.Context(), r.PathValue("id")
	p, m, err := s.find(ctx, id)
	if err != nil {
		s.fail(w, err)
		return
	}
	tasks, err := p.API().Tasks(ctx, m.ID)
	var asks []store.Ask
	if err == nil {
		asks, err = p.API().Asks(ctx)
	}
	var told Told
	if err == nil {
		told, err = p.Tell(ctx, m.ID)
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	v := whole{row: rowOf(m), Told: told, Project: p.Directory}
	for _, a := range asks {
		if a.Mission == m.ID {
			v.Asks = append(v.Asks, s.asked(a, m, "..", ""))
		}
	}
	for _, t := range tasks {
		c := card{Task: t, Tone: tones()[string(t.Status)], Cost: text.Cost(t.Usage), Waits: slices.ContainsFunc(v.Asks, func(a asked) bool { return a.Task == t.ID })}
		if c.Took = text.When(t.ElapsedMS > 0, text.Span(text.Millis(t.ElapsedMS))); c.Took == "" && !t.Started.IsZero() && t.Ended.IsZero() {
			c.Took = text.Span(time.Since(t.Started.Time))
		}
		v.Board = append(v.Board, c)
	}
	s.write(w, shown{Title: centurion.Clip(text.Clean(m.Goal), 80), Waits: len(v.Asks), Home: "../", Live: "../live?mission=" + m.ID, Status: http.StatusOK, Body: "mission", What: v})
}

// whole is a mission on its page.
type whole struct {
	row
	Told
	Project string
	Asks    []asked
	Board   []card
}

// Part is the part of the report with that id.
func (v whole) Part(id string) (p Part) {
	if i := slices.IndexFunc(v.Parts, func(p Part) bool { return p.ID == id }); i >= 0 {
		p = v.Parts[i]
	}
	return p
}

// Rest are the parts of the report that have no place of their own.
func (v whole) Rest() []Part {
	return slices.DeleteFunc(slices.Clone(v.Parts), func(p Part) bool { return slices.Contains([]string{"verdict", "goal", "plan", "files"}, p.ID) })
}

// find is a mission with its project.
func (s visit) find(ctx context.Context, id string) (*Project, server.Mission, error) {
	for _, p := range s.projects {
		m, err := p.API().Mission(ctx, id)
		if err == nil || centurion.KindOf(err) != centurion.KindNotFound {
			return p, m, err
		}
	}
	return nil, server.Mission{}, &centurion.Error{Kind: centurion.KindNotFound, Msg: "no open project has the mission " + id, Hint: "open the project first, or look for it with: centurion ps --all"}
}
