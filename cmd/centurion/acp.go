package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/host"
	"centurion/server/acp"
	"centurion/server/rpc"
)

func acpCommand(c *cli) *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "acp [flags]",
		Short: "Serve an editor by the Agent Client Protocol",
		Long: "Serve an editor (Zed, a JetBrains IDE, a plugin of Neovim) by the Agent Client Protocol, over standard input and output. The editor\n" +
			"starts this command itself; docs/acp.md says how to set it up. Each conversation works in the directory that the editor names.\n" +
			"When the editor leaves, its missions are paused; a new message or `centurion resume` continues them. The flags are those of run.",
		Example: "  centurion acp\n  centurion acp --model openai/gpt-5 --max-cost 5",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.costSet = cmd.Flags().Changed("max-cost")
			return (&serving{cli: c, flags: f, shared: host.NewShared()}).serveEditor(cmd.Context())
		},
	}
	f.bind(cmd)
	for _, name := range []string{"dir", "format", "detach", "yes", "merge"} {
		_ = cmd.Flags().MarkHidden(name)
	}
	return cmd
}

func (s *serving) serveEditor(ctx context.Context) error {
	if s.flags.dir != "" || s.flags.format != "" || s.flags.detach || s.flags.merge {
		return &centurion.Error{Kind: centurion.KindUsage, Msg: "--dir, --format, --detach and --merge are no flags of acp", Hint: "see: centurion acp --help"}
	}
	s.life = context.WithoutCancel(ctx) // the projects end after the editor's connection
	s.projects.open = func(dir string) (*served, error) {
		front, err := s.connect(dir, func(*frontEnd) {})
		return &served{frontEnd: front, stopTelling: func() {}}, err
	}
	return acp.Serve(ctx, wakeable(s.in), noClose{s.out}, acp.Options{Version: Version, Say: s.note,
		Open: func(ctx context.Context, dir string) (*acp.Project, error) {
			p, _, err := s.projects.use(ctx, dir) // until the end
			if err != nil {
				return nil, err
			}
			return &acp.Project{Project: p.project(), Pause: p.conn.PauseLeft, Bridge: &rpc.Bridge{API: p.conn.API, Follow: p.follow, Moved: p.hostChanged}}, nil
		},
		Close: func() (err error) {
			for _, p := range s.projects.end() {
				err = errors.Join(err, p.close(s.life))
			}
			return err
		}})
}
