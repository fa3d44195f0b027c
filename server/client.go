package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"centurion"
	"centurion/event"
	"centurion/orchestrator/mail"
	"centurion/orchestrator/retention"
	"centurion/store"
)

// Client accesses the host of a project through its socket, or a server through its port.
type Client struct {
	http  *http.Client
	base  string // without the path of the API
	token string
	dir   string // of the project, where there are several; "" is the server's own
	only  error  // why it may only read; nil if it may do everything
}

var _ API = (*Client)(nil)

// NewClient returns a client of the host that listens on the unix socket at path. It connects at the first call.
func NewClient(path, token string) *Client {
	return &Client{base: "http://host", token: token, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}}}}
}

// NewPortClient returns a client of `centurion serve` for the project in a directory, "" for the server's own. base is the address that it
// prints, with the token; without it the token is given. It connects at the first call.
func NewPortClient(base, token, dir string) *Client {
	return &Client{base: strings.TrimRight(base, "/"), token: token, dir: dir, http: &http.Client{Transport: &http.Transport{}}}
}

// OnlyRead makes every call fail that could change something, with why. It is called before other calls.
func (c *Client) OnlyRead(why error) { c.only = why }

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Info returns the host of the project. An error of centurion.KindNetwork means that no process answers.
func (c *Client) Info(ctx context.Context) (Info, error) { return get[Info](ctx, c, "", nil) }

// Missions lists all missions of the project.
func (c *Client) Missions(ctx context.Context) ([]Mission, error) {
	return get[[]Mission](ctx, c, "/missions", nil)
}

// Mission returns one mission.
func (c *Client) Mission(ctx context.Context, id string) (Mission, error) {
	return get[Mission](ctx, c, "/mission", url.Values{"id": {id}})
}

// Tasks lists the tasks of a mission.
func (c *Client) Tasks(ctx context.Context, mission string) ([]Task, error) {
	return get[[]Task](ctx, c, "/tasks", url.Values{"mission": {mission}})
}

// Task returns one task.
func (c *Client) Task(ctx context.Context, id string) (Task, error) {
	return get[Task](ctx, c, "/tasks/"+url.PathEscape(id), nil)
}

// Sessions lists the sessions of a mission.
func (c *Client) Sessions(ctx context.Context, mission string) ([]centurion.Session, error) {
	return get[[]centurion.Session](ctx, c, "/sessions", url.Values{"mission": {mission}})
}

// Session returns one session.
func (c *Client) Session(ctx context.Context, id string) (centurion.Session, error) {
	return get[centurion.Session](ctx, c, "/sessions/"+url.PathEscape(id), nil)
}

// Messages lists the messages of a session.
func (c *Client) Messages(ctx context.Context, session string) ([]Message, error) {
	return get[[]Message](ctx, c, "/sessions/"+url.PathEscape(session)+"/messages", nil)
}

// Message returns one message.
func (c *Client) Message(ctx context.Context, session, id string, parts ...string) (Message, error) {
	return get[Message](ctx, c, "/sessions/"+url.PathEscape(session)+"/messages/"+url.PathEscape(id), url.Values{"part": parts})
}

// Todo is the plan of a mission.
func (c *Client) Todo(ctx context.Context, mission string) (event.TodoData, error) {
	return get[event.TodoData](ctx, c, "/todo", url.Values{"mission": {mission}})
}

// Receipts lists the receipts of a mission.
func (c *Client) Receipts(ctx context.Context, mission string) ([]centurion.Receipt, error) {
	return get[[]centurion.Receipt](ctx, c, "/receipts", url.Values{"mission": {mission}})
}

// Asks lists the open asks.
func (c *Client) Asks(ctx context.Context) ([]store.Ask, error) {
	return get[[]store.Ask](ctx, c, "/asks", nil)
}

// Answer answers an ask.
func (c *Client) Answer(ctx context.Context, ask, answer string) error {
	return c.post(ctx, "/asks/"+url.PathEscape(ask), answerBody{answer, peerOf(ctx).Command})
}

// Cancel ends a mission or a task.
func (c *Client) Cancel(ctx context.Context, id, reason string) error {
	return c.post(ctx, "/cancel", cancelBody{id, reason})
}

// Start starts a mission in the host.
func (c *Client) Start(ctx context.Context, goal string, opts centurion.MissionOptions) (Mission, error) {
	return send[Mission](ctx, c, "/missions", startBody{goal, opts})
}

// Resume resumes a mission in the host.
func (c *Client) Resume(ctx context.Context, id string, opts centurion.MissionOptions) (Mission, error) {
	return send[Mission](ctx, c, "/resume", resumeBody{id, opts})
}

// Send sends a message to an agent.
func (c *Client) Send(ctx context.Context, p mail.Post) (mail.Posted, error) {
	return send[mail.Posted](ctx, c, "/send", p)
}

// Tidy cleans up after ended missions.
func (c *Client) Tidy(ctx context.Context, o retention.TidyOptions) (retention.TidyReport, error) {
	return send[retention.TidyReport](ctx, c, "/tidy", o)
}

// LastSeq is the number of the newest event.
func (c *Client) LastSeq(ctx context.Context) (int64, error) { return get[int64](ctx, c, "/seq", nil) }

// Pause stops a mission.
func (c *Client) Pause(ctx context.Context, id, reason string) error {
	return c.post(ctx, "/pause", cancelBody{id, reason})
}

// Expand gives a task a checkout with all files.
func (c *Client) Expand(ctx context.Context, id, reason string) error {
	return c.post(ctx, "/expand", cancelBody{id, reason})
}

// Events yields events from the host. When the host goes away the sequence ends with an error of centurion.KindNetwork; the caller may
// continue from the last sequence number with the next host.
func (c *Client) Events(ctx context.Context, q EventQuery) iter.Seq2[centurion.Event, error] {
	return func(yield func(centurion.Event, error) bool) {
		values := url.Values{"after": {strconv.FormatInt(q.After, 10)}, "mission": {q.Mission}, "session": {q.Session},
			"task": {q.Task}, "deltas": {strconv.FormatBool(q.Deltas)}, "follow": {strconv.FormatBool(q.Follow)}, "keep": {strconv.FormatBool(q.Keep)},
			"toasts": {strconv.FormatBool(q.Toasts)}, "view": {q.View}}
		resp, err := c.do(ctx, http.MethodGet, "/events?"+values.Encode(), nil)
		if err != nil {
			yield(centurion.Event{}, err)
			return
		}
		defer resp.Body.Close()
		err = c.readEvents(resp.Body, func(e centurion.Event) bool { return yield(e, nil) })
		if err != nil && ctx.Err() == nil {
			yield(centurion.Event{}, err)
		}
	}
}

// maxLine limits one event, in bytes.
const maxLine = 16 << 20

func (c *Client) readEvents(r io.Reader, each func(centurion.Event) bool) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	for lines.Scan() && lines.Err() == nil { // a line that its host has not finished is none
		var line struct {
			centurion.Event
			Error *wireError `json:"error"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return &centurion.Error{Op: "read events", Kind: centurion.KindInternal, Err: err}
		}
		if line.Error != nil {
			return line.Error.unwrap()
		}
		if !each(line.Event) {
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return gone("read events", err)
	}
	return nil
}

func get[T any](ctx context.Context, c *Client, path string, q url.Values) (T, error) {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return call[T](ctx, c, http.MethodGet, path, nil)
}

func (c *Client) post(ctx context.Context, path string, v any) error {
	_, err := send[struct{}](ctx, c, path, v)
	return err
}

func send[T any](ctx context.Context, c *Client, path string, v any) (T, error) {
	b, err := json.Marshal(v)
	if err != nil {
		var none T
		return none, &centurion.Error{Op: "ask the host", Kind: centurion.KindInternal, Err: err}
	}
	return call[T](ctx, c, http.MethodPost, path, bytes.NewReader(b))
}

// call makes a request and reads its answer.
func call[T any](ctx context.Context, c *Client, method, path string, body io.Reader) (got T, err error) {
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return got, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		return got, gone("ask the host", err)
	}
	return got, nil
}

// do makes a request and converts unsuccessful answers to the host's error.
func (c *Client) do(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	if c.only != nil && method != http.MethodGet {
		return nil, c.only
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+Prefix+path, body)
	if err != nil {
		return nil, &centurion.Error{Op: "ask the host", Kind: centurion.KindInternal, Err: err}
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.dir != "" {
		q := req.URL.Query()
		q.Set("directory", c.dir)
		req.URL.RawQuery = q.Encode()
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, gone("ask the host", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	var e errorBody
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(&e); err != nil || e.Error == nil {
		return nil, &centurion.Error{Op: "ask the host", Kind: centurion.KindInternal, Msg: "it answered " + resp.Status}
	}
	return nil, e.Error.unwrap()
}

func (e *wireError) unwrap() error {
	return &centurion.Error{Kind: e.Kind, Hint: e.Hint, Err: errors.New(e.Message)}
}

func gone(op string, err error) error {
	return &centurion.Error{Op: op, Kind: centurion.KindNetwork, Msg: "the host of this project does not answer", Err: err,
		Hint: "it may have just ended; see: centurion ps"}
}
