package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/event"
	"centurion/orchestrator"
	"centurion/server"
	"centurion/store"
	"centurion/tui"
)

// printAsk shows what waits: what it is, who asks, and what can be chosen.
func printAsk(w io.Writer, a store.Ask) error {
	title := tui.Escape(cmp.Or(a.Title, a.Text)) // nothing is hidden of what is to be allowed
	if a.Type == store.AskQuestion || a.Type == askMission {
		title = tui.EscapeWords(cmp.Or(a.Title, a.Text))
	}
	if _, err := fmt.Fprintf(w, "%s  %s  %s  %s\n", a.ID, a.Type, a.Permission, title); err != nil {
		return err
	}
	if a.Address != "" && (a.Line != "" || a.Type == store.AskQuestion) {
		from := a.Agent + " " + a.Address
		if a.Line != "" {
			from += ", below " + a.Line
		}
		if a.Task != "" {
			from += ", task " + a.Task
		}
		if _, err := fmt.Fprintf(w, "    from %s\n", tui.Escape(from)); err != nil {
			return err
		}
	}
	if a.Type == store.AskPermission {
		for _, l := range [][2]string{{"why", tui.EscapeWords(a.Text)}, {"always allows", whatAlways(a)}} {
			if l[1] == "" {
				continue
			}
			if _, err := fmt.Fprintf(w, "    %s: %s\n", l[0], l[1]); err != nil {
				return err
			}
		}
	}
	if a.Type != store.AskQuestion {
		return nil
	}
	for i, o := range a.Options {
		if _, err := fmt.Fprintf(w, "    %d  %s\n", i+1, tui.EscapeWords(o)); err != nil {
			return err
		}
	}
	return nil
}

// answerAsk answers what waits in this project. A question can be answered while nobody works on its mission.
func (v *view) answerAsk(ctx context.Context, id, answer string) error {
	ask, found := openAsk(ctx, v.API, id)
	if err := notAMission(ctx, v.API, id); err != nil && !found {
		return err
	}
	said := "answered"
	if found && ask.Type == store.AskQuestion {
		taken, err := chosen(ask, answer)
		if err != nil {
			return err
		}
		said += ": " + tui.Clean(centurion.Clip(oneLine(taken), shownAnswer))
	}
	if err := v.reply(ctx, id, answer); err != nil {
		return err
	}
	return v.say(nil, said+whatNext(ctx, v.API, ask, found))
}

// notAMission is the error for an answer to a mission itself, which stands among what waits if it is blocked: it has no question
// that could be answered, but its agent reads what is written to it.
func notAMission(ctx context.Context, api server.API, id string) error {
	if !strings.HasPrefix(id, string(centurion.PrefixMission)+"_") {
		return nil
	}
	m, err := api.Mission(ctx, id)
	if err != nil {
		return err
	}
	e := &centurion.Error{Op: "answer", Kind: centurion.KindUsage, Msg: m.ID + " is a mission, not a question", Hint: "see what waits with: centurion asks"}
	if !m.Status.Ended() {
		e.Hint = toldAndResumed(m.ID)
	}
	return e
}

// toldAndResumed is how a person's word reaches a blocked mission.
func toldAndResumed(mission string) string {
	return fmt.Sprintf(`write to it: centurion send %s "TEXT", then: centurion resume %s`, mission, mission)
}

// shownAnswer is how many bytes of an answer are said back.
const shownAnswer = 200

// chosen is what an answer to a question is taken as. A number that none of its choices has is refused.
func chosen(a store.Ask, answer string) (string, error) {
	taken := orchestrator.Chosen(a.Options, answer)
	if err := orchestrator.NoChoice(a.Options, taken); err != nil {
		return "", &centurion.Error{Op: "answer " + a.ID, Kind: centurion.KindUsage, Msg: err.Error(),
			Hint: "see them with: centurion asks; or answer in words of your own"}
	}
	return taken, nil
}

// whatNext says how the answer to a question comes to be read, where that does not happen by itself.
func whatNext(ctx context.Context, api server.API, ask store.Ask, found bool) string {
	if !found || ask.Type != store.AskQuestion || goesOn(ctx, api, ask.Mission) {
		return ""
	}
	return "; go on with: centurion resume " + ask.Mission
}

// reply answers an ask. A permission is waited for by a running host alone; a question can be answered without one, and so
// is said of an ask that waits no more what became of it.
func (v *view) reply(ctx context.Context, id, answer string) error {
	if ask, found := openAsk(ctx, v.API, id); found && ask.Type != store.AskQuestion {
		return v.API.Answer(ctx, id, answer)
	}
	return v.AsHost(ctx, func(api server.API) error { return api.Answer(ctx, id, answer) })
}

// goesOn reports whether somebody works on a mission, who reads an answer by themselves.
func goesOn(ctx context.Context, api server.API, mission string) bool {
	if _, idle := api.(*server.Local); idle {
		return false
	}
	m, err := api.Mission(ctx, mission)
	return err != nil || m.Status.Alive() // what cannot be read is no reason to send somebody away
}

// stillNeeds says what a blocked mission needs: a question that was answered meanwhile needs nothing but a resume.
func stillNeeds(m server.Mission, open []store.Ask) string {
	if before, several := strings.CutSuffix(m.Reason, "("+orchestrator.AsksHint+")"); several {
		return before + "(answered; go on with: centurion resume " + m.ID + ")"
	}
	before, rest, asked := strings.Cut(m.Reason, "(centurion answer ")
	id, _, named := strings.Cut(rest, " TEXT)")
	if !asked || !named || slices.ContainsFunc(open, func(a store.Ask) bool { return a.ID == id }) {
		return m.Reason
	}
	return before + "(answered; go on with: centurion resume " + m.ID + ")"
}

// asksFor reports whether what a blocked mission needs stands in the list already, as open questions of its own.
func asksFor(m server.Mission, open []store.Ask) bool {
	return slices.ContainsFunc(open, func(a store.Ask) bool {
		return a.Mission == m.ID && a.Type == store.AskQuestion &&
			(strings.Contains(m.Reason, "(centurion answer "+a.ID+" ") || strings.HasSuffix(m.Reason, "("+orchestrator.AsksHint+")"))
	})
}

// whatAlways says what the answer «always» to an ask for permission allows from then on, and for whom; "" where it adds nothing.
func whatAlways(a store.Ask) string {
	if a.Type != store.AskPermission || len(a.Always) == 0 {
		return ""
	}
	return tui.Escape(a.Permission+" "+strings.Join(a.Always, ", ")) + ", for every agent of this mission"
}

// approved says what an answer has allowed.
func approved(a store.Ask, found bool, how string) string {
	if how != tui.AnswerAlways || !found || a.Type != store.AskPermission {
		return "approved " + how
	}
	what := whatAlways(a)
	if what == "" {
		return "approved once: there is nothing in it that could be allowed for always"
	}
	return "approved always: " + what + ", until it ends"
}

// notAQuestion is the error for a permission given to a question: once is no answer to it.
func notAQuestion(ctx context.Context, api server.API, id string) error {
	if a, found := openAsk(ctx, api, id); found && a.Type == store.AskQuestion {
		return &centurion.Error{Kind: centurion.KindUsage, Msg: a.ID + " asks no permission, but: " + centurion.Clip(a.Text, 80),
			Hint: "answer it with: centurion answer " + a.ID + " TEXT"}
	}
	return nil
}

// refusal is how a person refuses what waits: of a question, that they do not answer it.
func refusal(ctx context.Context, api server.API, id, reason string) string {
	if a, found := openAsk(ctx, api, id); found && a.Type == store.AskQuestion {
		return strings.TrimSpace(event.NoAnswer + " " + reason)
	}
	return cmp.Or(reason, tui.AnswerReject)
}

// openAsk finds what waits by its id or the only beginning of one. What cannot be read is told by the answer itself.
func openAsk(ctx context.Context, api server.API, id string) (found store.Ask, ok bool) {
	all, err := api.Asks(ctx)
	if err != nil || id == "" {
		return found, false
	}
	n := 0
	for _, a := range all {
		if a.ID == id {
			return a, true
		}
		if strings.HasPrefix(a.ID, id) {
			found, n = a, n+1
		}
	}
	return found, n == 1
}

func asksCommand(c *cli) *cobra.Command {
	const none = "Nothing waits for you."
	return listCommand(c, "asks", "List what waits for you", "List everything that waits for a person: permissions, plans, questions, and blocked missions with what they need.",
		"  centurion asks\n  centurion approve per_0199…", exactly(0, 0, "no arguments"), none,
		func(ctx context.Context, v *view, _ []string) error {
			all, err := waiting(ctx, v.API)
			if err != nil {
				return err
			}
			if v.json() {
				return writeJSON(c.out, all)
			}
			if len(all) == 0 {
				_, err := fmt.Fprintln(c.out, none)
				return err
			}
			for _, a := range all {
				if err := printAsk(c.out, a); err != nil {
					return err
				}
			}
			_, err = fmt.Fprintln(c.out, howToAnswer(all))
			return err
		})
}

// howToAnswer names the commands that answer what waits.
func howToAnswer(all []store.Ask) string {
	var how []string
	for _, x := range []struct{ kind, say string }{
		{store.AskPermission, "centurion approve ID [once|always], centurion deny ID"}, {store.AskPlan, "centurion approve ID, centurion deny ID"},
		{store.AskQuestion, "centurion answer ID TEXT"}} {
		if slices.ContainsFunc(all, func(a store.Ask) bool { return a.Type == x.kind }) {
			how = append(how, x.say)
		}
	}
	said := ""
	if len(how) > 0 {
		said = "Answer with: " + strings.Join(how, ", ")
	}
	if !slices.ContainsFunc(all, func(a store.Ask) bool { return a.Type == askMission }) {
		return said
	}
	if said != "" {
		said += "\n"
	}
	return said + `A blocked mission: tell it what it needs (centurion send ID "TEXT"), then go on with it: centurion resume ID`
}

// askMission is the type of a blocked mission among what waits: it is answered by mending what it names and a resume.
const askMission = "mission"

// waiting lists the asks and, after them, the missions that are blocked.
func waiting(ctx context.Context, api server.API) ([]store.Ask, error) {
	all, err := api.Asks(ctx)
	if err != nil {
		return nil, err
	}
	missions, err := api.Missions(ctx)
	for _, m := range missions {
		if m.Status == centurion.MissionBlocked && !asksFor(m, all) {
			all = append(all, store.Ask{ID: m.ID, Type: askMission, Mission: m.ID, Session: m.Session, Title: stillNeeds(m, all)})
		}
	}
	return all, err
}

func answerCommand(c *cli) *cobra.Command {
	cmd := projectCommand(c, "answer ID TEXT", "Answer a question", "Answer a question of an agent: with the number or the text of one of its choices, or in your own words.\n"+
		"A question of a mission that has stopped can be answered, too; resume it afterwards.",
		"  centurion answer que_0199… \"use PostgreSQL\"\n  centurion answer que_0199… 2",
		exactly(2, -1, "an id and a text"), func(ctx context.Context, v *view, args []string) error {
			return v.answerAsk(ctx, args[0], strings.Join(args[1:], " "))
		})
	cmd.ValidArgsFunction = complete(c, 2, asks(store.AskQuestion))
	return cmd
}

func approveCommand(c *cli) *cobra.Command {
	cmd := projectCommand(c, "approve ID [once|always]", "Allow what waits for permission", "Allow what waits for your permission, once or always.",
		"  centurion approve per_0199… always", exactly(1, 2, "an id and once or always"),
		func(ctx context.Context, v *view, args []string) error {
			how := "once"
			if len(args) == 2 {
				how = args[1]
			}
			if how != "once" && how != "always" {
				return &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("%q is neither once nor always", how), Hint: "see: centurion approve --help"}
			}
			if err := notAQuestion(ctx, v.API, args[0]); err != nil {
				return err
			}
			ask, found := openAsk(ctx, v.API, args[0])
			return c.say(v.reply(ctx, args[0], how), approved(ask, found, how))
		})
	cmd.ValidArgsFunction = complete(c, 2, asks(store.AskPermission, store.AskPlan))
	return cmd
}

func denyCommand(c *cli) *cobra.Command {
	var reason string
	cmd := projectCommand(c, "deny ID", "Refuse what waits for permission", "Refuse what waits for your permission. The agent is told the reason.",
		"  centurion deny per_0199… --reason \"do not push\"", exactly(1, 1, "an id"),
		func(ctx context.Context, v *view, args []string) error {
			answer := refusal(ctx, v.API, args[0], strings.TrimSpace(reason))
			if slices.Contains([]string{"once", "always", "run", "yes"}, answer) { // a refusal, however it is worded
				answer = "no: " + answer
			}
			ask, found := openAsk(ctx, v.API, args[0])
			err := v.reply(ctx, args[0], answer)
			return c.say(err, "denied"+whatNext(ctx, v.API, ask, found))
		})
	cmd.ValidArgsFunction = complete(c, 2, asks(store.AskPermission, store.AskPlan, store.AskQuestion))
	cmd.Flags().StringVar(&reason, "reason", "", "told to the agent")
	return cmd
}
