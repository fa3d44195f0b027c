package toolserver

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"centurion"
	"centurion/agents"
	"centurion/orchestrator/approval"
	"centurion/orchestrator/mail"
	"centurion/sandbox"
	"centurion/server"
	"centurion/server/rpc"
	"centurion/store"
	"centurion/text"
)

// register adds all tools.
func (p *Project) register(t *tools) {
	add(t, "run_mission", "Start a mission: a team of agents plans the goal, works on it side by side and proves the result with checks. Returns at once with its id; "+
		"with wait_seconds, when it stops, asks something, or the time is over. It continues in either case: read on with mission_result.", works, p.runMission)
	add(t, "delegate", "Give one task to one agent, without plan and checks: a question about the project, or a small change. It sees nothing of your conversation. "+
		"Waits up to 50 s for the answer; after that it continues, see mission_result. Continue its conversation with send.", works, p.delegate)
	add(t, "list_missions", "List the newest missions of this project, with status, progress and cost.", reads, p.listMissions)
	add(t, "mission_result", "What has become of a mission: verdict, summary, evidence, checks, changed files, cost, and what is open. "+
		"With wait_seconds it first waits until the mission stops or asks something.", reads, p.missionResult)
	add(t, "mission_todo", "The plan of a mission: its items with their states and checks.", reads, p.missionTodo)
	add(t, "list_questions", "List what agents wait for: questions, and permissions with all of what would be approved.", reads, p.listQuestions)
	add(t, "answer", "Answer a question of an agent with a text or the number of an option, or a permission with \"once\" or \"deny\". "+
		"What you approve runs: approve only what the user wants.", works, p.answer)
	add(t, "send", "Write to an agent of a mission, which reads it before its next step. With wait_seconds it returns the answer, and a stopped mission is resumed.", works, p.send)
	add(t, "pause", "Pause a mission so that resume continues it.", adds, p.pause)
	add(t, "resume", "Continue a paused, blocked or failed mission, with its own limits.", works, p.resume)
	add(t, "cancel", "End a mission for good. What it has changed stays.", destroys, p.cancel)
}

// wait is how long a call waits.
type wait struct {
	Seconds int `json:"wait_seconds,omitempty" jsonschema:"wait this long at most, up to 3600; keep it below the timeout of your tool calls"`
}

func (w wait) limit() time.Duration {
	return min(max(time.Duration(w.Seconds)*time.Second, 0), maxWait)
}

// named names a mission.
type named struct {
	Mission string `json:"mission,omitempty" jsonschema:"its id or a unique beginning of it (default: the latest mission)"`
}

func (p *Project) mission(ctx context.Context, id string) (server.Mission, error) {
	return call(ctx, p, func(api server.API) (server.Mission, error) { return api.Mission(ctx, id) })
}

type runArgs struct {
	Goal  string `json:"goal" jsonschema:"what is to be done, with all that the agents have to know"`
	Agent string `json:"agent,omitempty" jsonschema:"the agent that owns the mission (default: the configured one)"`
	Model string `json:"model,omitempty" jsonschema:"provider/model (default: the configured one)"`
	wait
}

func (p *Project) runMission(ctx context.Context, req *mcp.CallToolRequest, in runArgs) (Result, error) {
	return p.begin(ctx, req, rpc.StartParams{Prompt: in.Goal, Agent: in.Agent, Model: in.Model}, in.limit())
}

type delegateArgs struct {
	Task  string `json:"task" jsonschema:"the task, with all that the agent has to know"`
	Agent string `json:"agent,omitempty" jsonschema:"assistant (default), or an agent of the user's with mode primary or all"`
	Model string `json:"model,omitempty" jsonschema:"provider/model (default: the configured one)"`
	wait
}

func (p *Project) delegate(ctx context.Context, req *mcp.CallToolRequest, in delegateArgs) (Result, error) {
	return p.begin(ctx, req, rpc.StartParams{Prompt: in.Task, Agent: in.Agent, Model: in.Model, Profile: agents.ProfileAssistant}, cmp.Or(in.limit(), delegateWait))
}

func (p *Project) begin(ctx context.Context, req *mcp.CallToolRequest, params rpc.StartParams, limit time.Duration) (Result, error) {
	if len(params.Prompt) > mail.MaxPost {
		return Result{}, &centurion.Error{Kind: centurion.KindUsage, Msg: "the goal is longer than " + centurion.Bytes(mail.MaxPost),
			Hint: "put the details into a file of the project and name it in the goal"}
	}
	params.Prompt = strings.TrimSpace(params.Prompt)
	m, err := p.Begin(ctx, params)
	if err != nil {
		return Result{}, err
	}
	return p.awaited(ctx, req, m.ID, limit)
}

// awaited waits for a mission, if there is time to, and says what has become of it.
func (p *Project) awaited(ctx context.Context, req *mcp.CallToolRequest, id string, limit time.Duration) (Result, error) {
	if limit > 0 {
		if err := p.await(ctx, req, id, limit); err != nil {
			return Result{}, err
		}
	}
	return p.result(ctx, id)
}

// listed limits the missions in a list.
const listed = 20

func (p *Project) listMissions(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (Missions, error) {
	all, err := call(ctx, p, func(api server.API) ([]server.Mission, error) { return api.Missions(ctx) })
	out := Missions{Missions: []Seen{}, More: max(len(all)-listed, 0)}
	for _, m := range all[:min(len(all), listed)] {
		out.Missions = append(out.Missions, p.seen(ctx, m))
	}
	return out, err
}

type resultArgs struct {
	named
	wait
}

func (p *Project) missionResult(ctx context.Context, req *mcp.CallToolRequest, in resultArgs) (Result, error) {
	m, err := p.mission(ctx, in.Mission)
	if err != nil {
		return Result{}, err
	}
	return p.awaited(ctx, req, m.ID, in.limit())
}

func (p *Project) missionTodo(ctx context.Context, _ *mcp.CallToolRequest, in named) (Todo, error) {
	m, err := p.mission(ctx, in.Mission)
	if err != nil {
		return Todo{}, err
	}
	items, err := p.items(ctx, m)
	return Todo{m.ID, items}, err
}

func (p *Project) listQuestions(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (Questions, error) {
	all, err := p.asks(ctx, "")
	return Questions{all}, err
}

type answerArgs struct {
	ID     string `json:"id" jsonschema:"of the question or permission"`
	Answer string `json:"answer" jsonschema:"a text or the number of an option; for a permission or a plan: once or deny"`
	Reason string `json:"reason,omitempty" jsonschema:"for a refusal: what the agent should do instead"`
}

// answer answers an ask of this server's missions. What holds for always is left to a person.
func (p *Project) answer(ctx context.Context, req *mcp.CallToolRequest, in answerArgs) (Done, error) {
	all, err := p.asks(ctx, "")
	if err != nil {
		return Done{}, err
	}
	i := slices.IndexFunc(all, func(q Question) bool { return q.ID == in.ID })
	if i < 0 {
		near := centurion.Nearest(in.ID, text.Each(all, func(q Question) string { return q.ID }))
		return Done{}, &centurion.Error{Op: "answer", Kind: centurion.KindNotFound, Msg: fmt.Sprintf("nothing with the id %q waits for an answer", centurion.Clip(in.ID, 80)) +
			text.When(near != "", "; the nearest is "+near), Hint: "see list_questions"}
	}
	q, said := all[i], strings.TrimSpace(in.Answer)
	switch {
	case !p.Own(q.Mission):
		err = &centurion.Error{Op: "answer", Kind: centurion.KindPermission, Msg: "mission " + q.Mission + " was not started here: only the user answers for it", Hint: "ask the user to look at: centurion asks"}
	case q.Type == store.AskQuestion:
		said = approval.Chosen(q.Options, said)
		err = approval.NoChoice(q.Options, said)
	case strings.EqualFold(said, "deny"):
		said = approval.Refusal(in.Reason)
	case strings.EqualFold(said, "once"):
		said = "once"
	default:
		err = &centurion.Error{Op: "answer", Kind: centurion.KindUsage, Msg: fmt.Sprintf("%q is neither once nor deny; %s stays open", centurion.Clip(said, 80), q.ID), Hint: "only the user can approve for always"}
	}
	if err != nil {
		return Done{}, err
	}
	ctx = server.WithPeer(ctx, sandbox.Peer{PID: os.Getppid(), Command: "the client of centurion mcp"})
	return Done{q.Mission, "answered " + q.ID}, p.Call(ctx, func(api server.API) error { return api.Answer(ctx, q.ID, said) })
}

type sendArgs struct {
	Text string `json:"text"`
	To   string `json:"to,omitempty" jsonschema:"0/ for the mission's own agent (default), an item such as T2, or an address such as 0/3"`
	named
	wait
}

func (p *Project) send(ctx context.Context, _ *mcp.CallToolRequest, in sendArgs) (Done, error) {
	m, err := p.mission(ctx, in.Mission)
	if err != nil {
		return Done{}, err
	}
	post := mail.Post{ID: centurion.NewID(centurion.PrefixDelivery), Mission: m.ID, To: cmp.Or(in.To, "0/"), Text: in.Text, Origin: centurion.OriginPerson}
	stopped := !m.Status.Alive()
	if in.limit() == 0 {
		got, err := call(ctx, p, func(api server.API) (mail.Posted, error) { return api.Send(ctx, post) })
		if got.Working && stopped {
			p.Take(m.ID) // it has gone on because of this
		}
		return Done{m.ID, "delivered to " + got.Agent + text.When(!got.Working, "; it is read when the mission is resumed")}, err
	}
	if post.Resume = stopped; stopped {
		p.Take(m.ID)
	}
	inner, cancel := context.WithTimeout(ctx, in.limit())
	defer cancel()
	reply, err := call(inner, p, func(api server.API) (mail.Reply, error) { return api.Prompt(inner, post) })
	if inner.Err() != nil && ctx.Err() == nil {
		return Done{m.ID, "delivered; there is no answer yet, see mission_result"}, nil
	}
	return Done{m.ID, reply.Text}, err
}

func (p *Project) pause(ctx context.Context, _ *mcp.CallToolRequest, in named) (Done, error) {
	m, err := p.mission(ctx, in.Mission)
	if err != nil {
		return Done{}, err
	}
	return Done{m.ID, "paused " + m.ID}, p.Call(ctx, func(api server.API) error { return api.Pause(ctx, m.ID, "an MCP client has paused it") })
}

func (p *Project) resume(ctx context.Context, req *mcp.CallToolRequest, in resultArgs) (Result, error) {
	m, err := p.mission(ctx, in.Mission)
	if err == nil && m.Status.Ended() {
		err = &centurion.Error{Op: "resume", Kind: centurion.KindConflict, Msg: "mission " + m.ID + " is " + string(m.Status) + " already", Hint: "see mission_result"}
	}
	if err == nil {
		_, err = p.Resume(ctx, m)
	}
	if err != nil {
		return Result{}, err
	}
	return p.awaited(ctx, req, m.ID, in.limit())
}

type cancelArgs struct {
	Mission string `json:"mission" jsonschema:"its id or a unique beginning of it"`
	Reason  string `json:"reason,omitempty"`
}

func (p *Project) cancel(ctx context.Context, _ *mcp.CallToolRequest, in cancelArgs) (Done, error) {
	if in.Mission == "" { // which would be the latest
		return Done{}, &centurion.Error{Op: "cancel", Kind: centurion.KindUsage, Msg: "mission is missing", Hint: "list_missions tells their ids"}
	}
	m, err := p.mission(ctx, in.Mission)
	if err == nil && !m.Status.CanBecome(centurion.MissionCancelled) { // the host takes no notice
		err = &centurion.Error{Op: "cancel", Kind: centurion.KindConflict, Msg: "mission " + m.ID + " is " + string(m.Status) + " already"}
	}
	if err != nil {
		return Done{}, err
	}
	return Done{m.ID, "cancelled " + m.ID}, p.Call(ctx, func(api server.API) error {
		return api.Cancel(ctx, m.ID, cmp.Or(in.Reason, "an MCP client has cancelled it"))
	})
}
