package orchestrator

import (
	"testing"

	"centurion"
	"centurion/guard"
	"centurion/permission"
)

// S3: an acceptance command has the network of a confined machine only if a person has given it, accepted it, or allowed it by a rule, an
// answer or their policy. That agents may run it at all, because it is confined, is not enough: an agent has written it.
func TestChecksAreOffline(t *testing.T) {
	const check = "exists a.txt"
	defaults := permission.Level{Name: permission.DefaultLevel, Rules: permission.Defaults(true)}
	asks := permission.Level{Name: "test", Rules: []permission.Rule{{Permission: "bash", Pattern: "*", Action: permission.Ask}}}
	for name, test := range map[string]struct {
		rules  []permission.Level
		opts   centurion.MissionOptions
		answer string
		online bool
	}{
		"the agents'":          {[]permission.Level{defaults}, centurion.MissionOptions{Ask: "deny"}, "", false},
		"the agents', allowed": {[]permission.Level{defaults}, centurion.MissionOptions{Ask: "allow"}, "", false},
		"by a rule":            {append([]permission.Level{defaults}, rules(permission.Allow)...), centurion.MissionOptions{Ask: "deny"}, "", true},
		"by the policy":        {[]permission.Level{defaults, asks}, centurion.MissionOptions{Ask: "allow"}, "", true},
		"by an answer":         {[]permission.Level{defaults, asks}, centurion.MissionOptions{Ask: "ask"}, "once", true},
		"with the plan":        {[]permission.Level{defaults}, centurion.MissionOptions{Ask: "deny", ShowPlan: true}, "run", true},
		"the person's":         {[]permission.Level{defaults}, centurion.MissionOptions{Ask: "deny", Verify: []string{check}}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One @worker\n  - verify: `"+check+"`")), do(work("T1", makeA)), say("I wait")),
				"worker":    steps(writeFile("a.txt")),
			}, func(r *rig) {
				r.cfg.Confined = true
				r.cfg.Rules = func(string) []permission.Level { return test.rules }
				r.restart()
				m := r.start(test.opts)
				var g guard.Group
				done := r.inBackground(&g, m.ID)
				if test.answer != "" {
					r.answer(r.waitFor(m.ID, 1)[0].ID, test.answer)
				}
				<-done
				if err := g.Wait(); err != nil {
					t.Error(err)
				}
				if online, ran := r.shell.online[check]; !ran || online != test.online {
					t.Errorf("ran %v, with network %v", ran, online)
				}
			})
		})
	}
}
