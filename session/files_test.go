package session_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"

	"centurion"
	"centurion/provider"
	"centurion/provider/anthropic"
	"centurion/provider/scripted"
	"centurion/session"
	"centurion/store"
	"centurion/tools"
)

// picture is a PNG of a size; its content differs with n.
func picture(t testing.TB, name string, w, h, n int) centurion.File {
	t.Helper()
	m := image.NewGray(image.Rect(0, 0, w, h))
	m.Pix[0], m.Pix[1] = byte(n), byte(n>>8)
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	f, err := centurion.NewFile(name, b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// camera is a tool that returns a picture.
func camera(f centurion.File) tool {
	return tool{name: "camera", effect: readOnly, run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
		return tools.Result{Output: "shot", Attachments: []centurion.File{f}}, nil
	}}
}

// sayWith stores a person's message with files.
func (r *rig) sayWith(text string, files ...centurion.File) {
	r.t.Helper()
	var m centurion.Message
	err := r.store.Update(r.t.Context(), func(tx *store.Tx) (err error) {
		rec := r.Record()
		m, err = session.SayParts(tx, &rec, centurion.OriginPerson, "", session.Texts(text, files...))
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.Add(m)
}

// filesRig makes a session that speaks over a wire and takes images.
func filesRig(t *testing.T, wire provider.Wire, script func(scripted.Request) scripted.Answer, ts ...tools.Tool) *rig {
	r := newRig(t, script, ts...)
	r.cfg.Model = provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.model.Client(), Wire: wire})
	r.cfg.Media = centurion.Media{Image: true}
	r.reopen()
	return r
}

// LOOP-13, LOOP-77: the picture that a person sends and the one that a tool returns reach the provider over every wire, byte for
// byte; a strict one accepts the history; and after a restart what is sent begins with exactly what was sent before.
func TestFilesReachTheProvider(t *testing.T) {
	given, shot := picture(t, "docs/a b.png", 640, 480, 1), picture(t, "shot.png", 32, 16, 2)
	for name, wire := range map[string]provider.Wire{"chat": nil, "responses": provider.Responses{}, "messages": anthropic.Wire{}} {
		t.Run(name, func(t *testing.T) {
			seen := map[int]string{}
			r := filesRig(t, wire, func(q scripted.Request) scripted.Answer {
				var got []string
				for _, f := range q.Files() {
					got = append(got, f.SHA256)
				}
				seen[q.Turn] = strings.Join(got, " ")
				if q.Turn == 1 {
					return call("camera {}", "echo {}")
				}
				return scripted.Answer{Say: "seen"}
			}, camera(shot), tool{name: "echo", effect: readOnly})
			r.sayWith("What is it?", given)
			r.turn()
			first, both := fileSum(given), fileSum(given)+" "+fileSum(shot)
			if seen[1] != first || seen[2] != both {
				t.Errorf("the provider was shown\n%q, then\n%q; want\n%q, then\n%q", seen[1], seen[2], first, both)
			}
			q := r.model.Requests()[0]
			if !strings.Contains(q.Last(), "What is it?\n\n[image docs/a b.png, 640×480]") {
				t.Errorf("the picture has no name: %q", q.Last())
			}
			r.reopen()
			r.say("And now?")
			r.turn()
			all := r.model.Requests()
			if q := all[2]; seen[3] != both || q.Prefix < q.Before-2 {
				t.Errorf("after a restart %q is shown, and %d of %d bytes are as before", seen[3], q.Prefix, q.Before)
			}
			if p := calls(r.messages()[2])[0]; len(p.State.Attachments) != 1 || !bytes.Equal(p.State.Attachments[0].File.Data, shot.Data) {
				t.Errorf("stored: %+v", p.State)
			}
		})
	}
}

func fileSum(f centurion.File) string { return fmt.Sprintf("%x", sha256.Sum256(f.Data)) }

// LOOP-77: a model that takes no images is told of them in words, whatever model the history was made with.
func TestFilesForOtherModels(t *testing.T) {
	r := filesRig(t, nil, inOrder(call("camera {}")), camera(picture(t, "shot.png", 32, 16, 2)))
	r.sayWith("What is it?", picture(t, "a.png", 3, 2, 1))
	r.turn()
	r.cfg.Media = centurion.Media{}
	r.reopen()
	r.say("And now?")
	r.turn()
	all := r.model.Requests()
	if n := len(all[1].Files()); n != 2 {
		t.Fatalf("%d files were shown to the model that takes them", n)
	}
	q := all[2]
	var text strings.Builder
	for _, m := range q.Messages() {
		text.WriteString(m.Text + "\n")
	}
	if len(q.Files()) > 0 || !strings.Contains(text.String(), "(image a.png, 3×2 is not shown: this model takes no images)") ||
		!strings.Contains(text.String(), "(image shot.png, 32×16 is not shown: this model takes no images)") {
		t.Errorf("%d files, and the words\n%s", len(q.Files()), text.String())
	}
}

// LOOP-77: a request never has more files than providers take. The oldest go, many at once: what stays is the same from request
// to request in between, and after a restart.
func TestFilesAreBounded(t *testing.T) {
	n := 0
	r := filesRig(t, nil, func(q scripted.Request) scripted.Answer {
		if q.Turn > 30 {
			return scripted.Answer{Say: "enough"}
		}
		return call("shoot {}")
	}, tool{name: "shoot", effect: readOnly, run: func(context.Context, *tools.Call, json.RawMessage) (tools.Result, error) {
		n++
		return tools.Result{Output: "shot", Attachments: []centurion.File{picture(t, fmt.Sprintf("p%d.png", n), 8, 8, n)}}, nil
	}})
	r.turn()
	changed := 0
	var newest []string
	for _, q := range r.model.Requests() {
		files := q.Files()
		if len(files) > centurion.MaxFiles {
			t.Errorf("request %d has %d files", q.Turn, len(files))
		}
		if q.Prefix < q.Before-2 {
			changed++
		}
		newest = nil
		for _, f := range files {
			newest = append(newest, f.SHA256)
		}
	}
	if changed != 1 || len(newest) < centurion.MaxFiles/2 || newest[len(newest)-1] != fileSum(picture(t, "x", 8, 8, 30)) {
		t.Errorf("what was sent before changed %d times in 30 requests; %d files at the end", changed, len(newest))
	}
	r.reopen()
	r.say("more")
	r.turn()
	all := r.model.Requests()
	if q := all[len(all)-1]; q.Prefix < q.Before-2 {
		t.Errorf("after a restart %d of %d bytes are as before", q.Prefix, q.Before)
	}
}

// LOOP-77: images count for the window and for what is reserved, by what a model makes of them and not by their bytes.
func TestFilesCount(t *testing.T) {
	model := &answerer{}
	r := newRig(t, nil)
	var needs []int64
	r.cfg.Model, r.cfg.Media, r.cfg.Price = model, centurion.Media{Image: true}, nil
	r.cfg.Reserve = func(_ context.Context, n session.Need) (session.Cover, error) {
		needs = append(needs, n.Input)
		return session.Cover{}, nil
	}
	r.reopen()
	r.turn()
	r.sayWith("look", picture(t, "a.png", 1500, 1000, 1)) // 2,000 tokens
	r.turn()
	if len(needs) != 2 || needs[1]-needs[0] < 2000 || needs[1]-needs[0] > 2100 {
		t.Errorf("reserved %v tokens: the image of 2000 is not in it", needs)
	}
	if got := r.last().Usage.Tokens.Input; got < 2000 || got > 2300 {
		t.Errorf("estimated as %d tokens", got)
	}
}

// LOOP-77: a summary stands for pictures with their names; the first message keeps its own.
func TestFilesAreSummarized(t *testing.T) {
	model := &answerer{}
	r := newRig(t, nil)
	r.cfg.Model, r.cfg.Media, r.cfg.Window = model, centurion.Media{Image: true}, 8000
	r.reopen()
	for i := range 6 {
		r.sayWith(fmt.Sprintf("look at %d", i), picture(t, fmt.Sprintf("p%d.png", i), 1500, 1000, i))
		r.turn()
	}
	if len(model.summed) == 0 {
		t.Fatal("pictures of 12,000 tokens fill no window of 8,000")
	}
	if record := model.summed[0].Messages[0]; len(record.Files) > 0 || !strings.Contains(record.Text, "[image p0.png, 1500×1000]") {
		t.Errorf("the record has %d files and says\n%s", len(record.Files), record.Text)
	}
	for i, req := range model.asked {
		files := 0
		for _, m := range req.Messages {
			files += len(m.Files)
		}
		if files*2000 > r.cfg.Window {
			t.Errorf("request %d has %d images", i, files)
		}
		if fault := valid(req.Messages); fault != "" {
			t.Errorf("request %d: %s", i, fault)
		}
	}
	last := model.asked[len(model.asked)-1].Messages
	if !slices.ContainsFunc(last, func(m provider.Message) bool { return strings.Contains(m.Text, "<summary>") }) {
		t.Errorf("no summary in %+v", last)
	}
}
