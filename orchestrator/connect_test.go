package orchestrator

import (
	"testing"

	"centurion"
	"centurion/permission"
)

// S3: on a confined machine, commands get connections by name if a rule allows a host, or if asks can be allowed; checks only by a rule.
// What a repository says gives none.
func TestWhoConnectsByName(t *testing.T) {
	const own, check = "exists go.mod", "exists a.txt"
	defaults := permission.Level{Name: permission.DefaultLevel, Rules: permission.Defaults(true)}
	hosts := permission.Level{Name: "opencode.json", Rules: []permission.Rule{{Permission: permission.Network, Pattern: "*.example", Action: permission.Allow}}}
	shipped := hosts
	shipped.Untrusted = true
	for name, test := range map[string]struct {
		rules      []permission.Level
		ask        string
		confined   bool
		own, check bool
	}{
		"no one to ask":      {[]permission.Level{defaults}, "deny", true, false, false},
		"the policy":         {[]permission.Level{defaults}, "allow", true, true, false},
		"a rule":             {[]permission.Level{defaults, hosts}, "deny", true, true, true},
		"a repository's":     {[]permission.Level{defaults, shipped}, "deny", true, false, false},
		"a rule, unconfined": {[]permission.Level{defaults, hosts, {Name: "test", Rules: []permission.Rule{{Permission: "bash", Pattern: "*", Action: permission.Allow}}}}, "deny", false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, map[string]script{
				"commander": steps(do(plans("- [ ] T1 One @worker\n  - verify: `"+check+"`")), do(work("T1", makeA)), say("I wait")),
				"worker":    steps(bash(own), writeFile("a.txt")),
			}, func(r *rig) {
				r.cfg.Confined = test.confined
				r.cfg.Rules = func(string) []permission.Level { return test.rules }
				r.restart()
				r.run(r.start(centurion.MissionOptions{Ask: test.ask}).ID)
				for script, want := range map[string]bool{own: test.own, check: test.check} {
					if named, ran := r.shell.named[script]; !ran || named != want {
						t.Errorf("%s: ran %v, connects by name %v", script, ran, named)
					}
				}
			})
		})
	}
}
