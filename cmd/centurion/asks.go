package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"centurion"
	"centurion/cli/lookup"
	"centurion/cli/print"
	"centurion/server"
	"centurion/store"
	"centurion/text"
)

// answerAsk answers an approval or question of this project. A question can also be answered while its mission is stopped.
func (v *view) answerAsk(ctx context.Context, id, answer string) error {
	ask, found := lookup.Ask(ctx, v.API, id)
	if err := lookup.RefuseMission(ctx, v.API, id); err != nil && !found {
		return err
	}
	said := "answered"
	if found && ask.Type == store.AskQuestion {
		taken, err := lookup.Choice(ask, answer)
		if err != nil {
			return err
		}
		said += ": " + text.Clean(centurion.Clip(oneLine(taken), shownAnswer))
	}
	if err := v.reply(ctx, id, answer); err != nil {
		return err
	}
	return v.say(nil, said+whatNext(ctx, v.API, ask, found))
}

// shownAnswer is how many bytes of an answer are said back.
const shownAnswer = 200

// whatNext says how the answer to a question gets read if that does not happen by itself.
func whatNext(ctx context.Context, api server.API, ask store.Ask, found bool) string {
	if !found || ask.Type != store.AskQuestion || lookup.IsRead(ctx, api, ask.Mission) {
		return ""
	}
	return "; continue with: centurion resume " + ask.Mission
}

// reply answers an ask. A permission needs a running host; a question can be answered without one. For an ask that no longer waits, the
// error says what happened to it.
func (v *view) reply(ctx context.Context, id, answer string) error {
	if ask, found := lookup.Ask(ctx, v.API, id); found && ask.Type != store.AskQuestion {
		return v.API.Answer(ctx, id, answer)
	}
	return v.AsHost(ctx, func(api server.API) error { return api.Answer(ctx, id, answer) })
}

func asksCommand(c *cli) *cobra.Command {
	const none = "Nothing waits for you."
	var address string
	cmd := listCommand(c, "asks", "List approvals and questions that wait for you", "List open permissions, plans, questions, and blocked missions with what they need.\n"+
		"With --links also print a link for each: it shows this one alone in a browser, and answers it once. It is at the address that\n"+
		"`centurion serve` has printed.",
		"  centurion asks\n  centurion approve per_0199…\n  centurion asks --links=http://127.0.0.1:4097", exactly(0, 0, "no arguments"), none,
		func(ctx context.Context, v *view, _ []string) error {
			all, err := lookup.Waiting(ctx, v.API)
			if err != nil {
				return err
			}
			links, err := linksOf(all, address, v.Place.Token)
			if err != nil {
				return err
			}
			return printList(c, v.format, links, none, func() error {
				for _, a := range links {
					if err := print.Ask(c.out, a.Ask); err != nil {
						return err
					}
					if a.Link != "" {
						if err := c.say(nil, "    link: "+a.Link); err != nil {
							return err
						}
					}
				}
				return c.say(nil, print.HowToAnswer(all))
			})
		})
	cmd.Flags().StringVar(&address, "links", "", "print links, at this address of centurion serve")
	cmd.Flag("links").NoOptDefVal = fmt.Sprintf("http://127.0.0.1:%d", defaultPort)
	return cmd
}

// linkedAsk is an ask with its link, if links are wanted.
type linkedAsk struct {
	store.Ask
	Link string `json:"link,omitempty"`
}

// linksOf adds links at an address, from which a token is removed; "" means none.
func linksOf(all []store.Ask, address, token string) (out []linkedAsk, err error) {
	at, err := url.Parse(address)
	if address != "" && (err != nil || at.Host == "") {
		return nil, &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("--links cannot be %q; it is the address of a server", address), Hint: "give the one that `centurion serve` has printed"}
	}
	for _, a := range all {
		one := linkedAsk{Ask: a}
		if address != "" && a.Type != lookup.BlockedMission {
			one.Link = (&url.URL{Scheme: at.Scheme, Host: at.Host, Path: server.AskLink(token, a.ID)}).String()
		}
		out = append(out, one)
	}
	return out, nil
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
	cmd := projectCommand(c, "approve ID [once|always]", "Approve a permission or plan", "Approve a permission or a plan, once or always.",
		"  centurion approve per_0199… always", exactly(1, 2, "an id and once or always"),
		func(ctx context.Context, v *view, args []string) error {
			how := cmp.Or(strings.Join(args[1:], ""), "once")
			if how != "once" && how != "always" {
				return &centurion.Error{Kind: centurion.KindUsage, Msg: fmt.Sprintf("%q is neither once nor always", how), Hint: "see: centurion approve --help"}
			}
			if err := lookup.RefuseQuestion(ctx, v.API, args[0]); err != nil {
				return err
			}
			ask, found := lookup.Ask(ctx, v.API, args[0])
			return c.say(v.reply(ctx, args[0], how), print.Approved(ask, found, how))
		})
	cmd.ValidArgsFunction = complete(c, 2, asks(store.AskPermission, store.AskPlan))
	return cmd
}

func denyCommand(c *cli) *cobra.Command {
	var reason string
	cmd := projectCommand(c, "deny ID", "Refuse a permission or plan", "Refuse a permission or a plan. The agent is told the reason.",
		"  centurion deny per_0199… --reason \"do not push\"", exactly(1, 1, "an id"),
		func(ctx context.Context, v *view, args []string) error {
			answer := lookup.Refusal(ctx, v.API, args[0], strings.TrimSpace(reason))
			ask, found := lookup.Ask(ctx, v.API, args[0])
			err := v.reply(ctx, args[0], answer)
			return c.say(err, "denied"+whatNext(ctx, v.API, ask, found))
		})
	cmd.ValidArgsFunction = complete(c, 2, asks(store.AskPermission, store.AskPlan, store.AskQuestion))
	cmd.Flags().StringVar(&reason, "reason", "", "reason for the agent")
	return cmd
}
