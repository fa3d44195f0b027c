package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"centurion"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/tools"
)

// A model that makes the same refused call again is told so the third time, and its turn ends after the tenth.
func TestSameRefusedCall(t *testing.T) {
	asked := 0
	r := newRig(t, func(scripted.Request) scripted.Answer {
		asked++
		return scripted.Answer{Calls: []scripted.Call{{Name: "finish", Arguments: `{"path": "x"}`}}}
	}, tool{name: "finish", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
		return tools.Result{}, &centurion.Error{Kind: centurion.KindConflict, Msg: "not complete; T1 is missing"}
	}})
	_, err := r.Turn(t.Context())
	stuck, ok := errors.AsType[*session.StuckError](err)
	if !ok || stuck.Tool != "finish" || stuck.Times != 10 || asked != 10 || stuck.Said != "not complete; T1 is missing" {
		t.Fatalf("after %d requests: %v", asked, err)
	}
	n := 0
	for _, m := range r.messages() {
		for _, p := range calls(m) {
			n++
			if told := strings.Contains(p.State.Error, "times in a row"); told != (n >= 3) || !strings.HasPrefix(p.State.Error, "not complete; T1 is missing") {
				t.Errorf("call %d is answered with %q", n, p.State.Error)
			}
		}
	}
	if _, err := r.Turn(t.Context()); asked != 11 || err == nil { // resumed without a word of anybody, it has one try more
		t.Errorf("resumed: %d requests, %v", asked, err)
	}
}

// What differs, in its arguments, its refusal or by what came in between, is no repetition.
func TestNotTheSameCall(t *testing.T) {
	for name, answer := range map[string]func(n int) (call scripted.Call, refusal string){
		"other arguments": func(n int) (scripted.Call, string) {
			return scripted.Call{Name: "finish", Arguments: `{"path": "` + strings.Repeat("x", n) + `"}`}, "no"
		},
		"another refusal": func(n int) (scripted.Call, string) {
			return scripted.Call{Name: "finish", Arguments: `{"path": "x"}`}, strings.Repeat("no ", n)
		},
		"something in between": func(n int) (scripted.Call, string) {
			if n%2 == 0 {
				return scripted.Call{Name: "finish", Arguments: `{"path": "x"}`}, ""
			}
			return scripted.Call{Name: "finish", Arguments: `{"path": "x"}`}, "no"
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			r := newRig(t, func(scripted.Request) scripted.Answer {
				if asked++; asked > 25 {
					return scripted.Answer{Say: "done"}
				}
				c, _ := answer(asked)
				return scripted.Answer{Calls: []scripted.Call{c}}
			}, tool{name: "finish", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
				if _, no := answer(asked); no != "" {
					return tools.Result{}, &centurion.Error{Kind: centurion.KindConflict, Msg: no}
				}
				return tools.Result{Output: "yes"}, nil
			}})
			if out := r.turn(); out.Text != "done" {
				t.Errorf("ended with %+v", out)
			}
			for _, m := range r.messages() {
				for _, p := range calls(m) {
					if strings.Contains(p.State.Error, "in a row") {
						t.Errorf("told %q", p.State.Error)
					}
				}
			}
		})
	}
}

// A model that makes the same successful call again is told so the tenth time, and its turn ends after the twentieth. What it got stays
// in front of the remark.
func TestSameCallAgain(t *testing.T) {
	asked := 0
	r := newRig(t, func(scripted.Request) scripted.Answer {
		asked++
		return scripted.Answer{Calls: []scripted.Call{{Name: "look", Arguments: `{"path": "x"}`}}}
	}, tool{name: "look", run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
		return tools.Result{Output: "all is well"}, nil
	}})
	_, err := r.Turn(t.Context())
	stuck, ok := errors.AsType[*session.StuckError](err)
	if !ok || stuck.Tool != "look" || stuck.Times != 20 || asked != 20 || stuck.Said != "all is well" || !strings.Contains(stuck.Error(), "the same result") {
		t.Fatalf("after %d requests: %v", asked, err)
	}
	n := 0
	for _, m := range r.messages() {
		for _, p := range calls(m) {
			n++
			if told := strings.Contains(p.State.Output, "times in a row"); told != (n >= 10) || !strings.HasPrefix(p.State.Output, "all is well") {
				t.Errorf("call %d is answered with %q", n, p.State.Output)
			}
		}
	}
}
