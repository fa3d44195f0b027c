package orchestrator

import (
	"bytes"
	"image"
	"image/png"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"centurion"
	"centurion/guard"
	"centurion/orchestrator/mail"
	"centurion/provider"
	"centurion/provider/scripted"
)

func pictureOf(t testing.TB, name string, w, h int) centurion.File {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	f, err := centurion.NewFile(name, b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// seeing gives the rig a model that takes images.
func (r *rig) seeing() {
	client := provider.New(provider.Endpoint{Model: ref, BaseURL: scripted.URL, HTTP: r.http})
	r.cfg.Model = func(string) (Model, error) {
		return Model{Client: client, Ref: ref, Price: &centurion.Price{Input: 1, Output: 10}, Media: centurion.Media{Image: true}}, nil
	}
	r.restart()
}

// LOOP-13, LOOP-77: a mission begins with files, a message brings more, and an agent reads one. All reach the model, the data
// is kept once, in the history, and a host that goes on sends what was sent before.
func TestFilesInAMission(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(call("read", args{"filePath": "look here.png"})), do(call("bash", args{"command": "sleep 1m", "description": "x"})), say("I have seen all")),
	}, func(r *rig) {
		r.seeing()
		goal, sent, read := pictureOf(r.t, "goal.png", 10, 11), pictureOf(r.t, "sent.png", 20, 21), pictureOf(r.t, "look here.png", 30, 31)
		r.write("look here.png", string(read.Data))
		var g guard.Group
		m := r.start(centurion.MissionOptions{Files: []centurion.File{goal}})
		done := r.inBackground(&g, m.ID)
		time.Sleep(30 * time.Second)
		if _, err := r.host.Mail.Send(r.ctx, mail.Post{Mission: m.ID, To: "0/", Text: "and this", Files: []centurion.File{sent}}); err != nil {
			r.t.Fatal(err)
		}
		synctest.Wait()
		r.is(<-done, centurion.MissionCompleted, "")
		g.Wait()

		var widths [][]int
		asked := r.requests("commander")
		for _, q := range asked {
			var w []int
			for _, f := range q.Files() {
				w = append(w, f.Width)
			}
			widths = append(widths, w)
		}
		if len(widths) != 3 || len(widths[0]) != 1 || widths[0][0] != 10 || len(widths[1]) != 2 || widths[1][1] != 30 || len(widths[2]) != 3 || widths[2][2] != 20 {
			r.t.Errorf("the requests show images of the widths %v; want 10, then 10 and 30, then 10, 30 and 20", widths)
		}
		has(r.t, texts(asked[2]), "[image goal.png, 10×11]", "[image look here.png, 30×31]", "and this\n\n[image sent.png, 20×21]")

		stored, err := r.store.Mission(r.ctx, m.ID)
		if err != nil || len(stored.Options.Files) > 0 {
			r.t.Errorf("the mission's row keeps %d files, too (%v)", len(stored.Options.Files), err)
		}
		all, err := r.store.Deliveries(r.ctx, m.ID)
		if err != nil || len(all) != 1 || len(all[0].Files) > 0 || all[0].Taken.IsZero() {
			r.t.Errorf("what was delivered is kept a second time: %+v, %v", all, err)
		}
		for _, e := range r.events(m.ID) {
			if strings.Contains(string(e.Data), "base64") || len(e.Data) > 20_000 {
				r.t.Errorf("the journal holds a file: %s", e.Type)
			}
		}
		has(r.t, string(r.events(m.ID, centurion.EventMessageQueued)[0].Data), `"files":["image sent.png, 20×21"]`)
	})
}

// LOOP-77: a message with a picture that waits when the host ends is told whole by the next one, and the history before it is the
// same byte for byte.
func TestFilesAcrossARestart(t *testing.T) {
	bubble(t, map[string]script{
		"commander": steps(do(call("bash", args{"command": "sleep 1m", "description": "x"})), say("done")),
	}, func(r *rig) {
		r.seeing()
		m := r.start(centurion.MissionOptions{Files: []centurion.File{pictureOf(r.t, "goal.png", 10, 11)}, MaxRounds: 1})
		r.is(r.run(m.ID), centurion.MissionPaused, "")
		if _, err := r.host.Mail.Send(r.ctx, mail.Post{Mission: m.ID, To: "0/", Text: "and this", Files: []centurion.File{pictureOf(r.t, "sent.png", 20, 21)}}); err != nil {
			r.t.Fatal(err)
		}
		r.restart()
		if err := r.host.Control.Raise(r.ctx, m.ID, centurion.MissionOptions{MaxRounds: 9}); err != nil {
			r.t.Fatal(err)
		}
		r.is(r.run(m.ID), centurion.MissionCompleted, "")
		asked := r.requests("commander")
		last := asked[len(asked)-1]
		if files := last.Files(); len(files) != 2 || files[0].Width != 10 || files[1].Width != 20 {
			r.t.Errorf("shown after the restart: %v", files)
		}
	})
}

// LOOP-13: files that a model does not take, or nobody, are refused before anything is stored.
func TestFilesAreRefused(t *testing.T) {
	bubble(t, nil, func(r *rig) {
		png := pictureOf(r.t, "a.png", 2, 2)
		lie := png
		lie.Mime = centurion.MimePDF
		refused := func(err error, says string) {
			r.t.Helper()
			if centurion.KindOf(err) != centurion.KindUsage || !strings.Contains(err.Error(), says) {
				r.t.Errorf("%v; want %q", err, says)
			}
		}
		_, err := r.host.Start(r.ctx, "build it", centurion.MissionOptions{Files: []centurion.File{png}})
		refused(err, "attach a.png: the model scripted/scripted takes no image/png")
		if all, _ := r.store.Missions(r.ctx); len(all) > 0 {
			r.t.Errorf("a mission was recorded: %v", all)
		}
		m := r.start(centurion.MissionOptions{})
		_, err = r.host.Mail.Send(r.ctx, mail.Post{Mission: m.ID, To: "0/", Text: "look", Files: []centurion.File{png}})
		refused(err, "takes no image/png")
		_, err = r.host.Mail.Send(r.ctx, mail.Post{Mission: m.ID, To: "0/", Text: "look", Files: []centurion.File{lie}})
		refused(err, "it is said to be application/pdf and is image/png")
		if all, _ := r.store.Deliveries(r.ctx, m.ID); len(all) > 0 {
			r.t.Errorf("a message was stored: %v", all)
		}
		r.run(m.ID)
	})
}
