import { tool, type Plugin } from "@opencode-ai/plugin"
import { z as z3 } from "zod/v3"

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
const two = ["config", "chat.message", "chat.params", "chat.headers", "permission.ask", "command.execute.before", "tool.execute.before", "tool.execute.after", "shell.env",
  "tool.definition", "experimental.chat.messages.transform", "experimental.chat.system.transform", "experimental.session.compacting", "experimental.text.complete"]

export const Good: Plugin = async ({ $, client, directory, worktree, serverUrl }) => {
  if (typeof $ !== "function" || !client.session.prompt || !directory || !worktree || !serverUrl) throw new Error("the input is not whole")
  const seen: number[] = []
  const hooks: Record<string, any> = {
    auth: { provider: "x" },
    dispose: async () => {},
    event: async ({ event }: any) => {
      seen.push(event.n)
    },
    tool: {
      greet: tool({
        description: "Greets",
        args: { name: tool.schema.string().min(1).describe("whom"), times: tool.schema.number().int().default(1), loud: tool.schema.boolean().optional() },
        async execute(args, ctx) {
          console.log("printed", args.times)
          process.stdout.write("written\n")
          const text = `Hello ${args.name} in ${ctx.directory} as ${ctx.agent}`.repeat(args.times)
          return args.loud ? text.toUpperCase() : text
        },
      }),
      plain: {
        description: "",
        args: { path: { type: "string", description: "a file", required: true }, depth: { type: "integer" } },
        execute: async (args: any) => ({ output: args }),
      },
      whole: { args: { type: "object", properties: { mode: { enum: ["a", "b"] } }, required: ["mode"] }, execute: async () => {} },
      old: {
        args: {
          kind: z3.enum(["a", "b"]).describe("a kind"),
          list: z3.array(z3.object({ n: z3.number(), s: z3.string().optional() })).default([]),
          either: z3.union([z3.string(), z3.literal(3)]).nullable().optional(),
          any: z3.record(z3.any()).optional(),
        },
        execute: async (args: any) => JSON.stringify(args),
      },
      huge: { args: {}, execute: async () => "x".repeat(50 << 20) },
      throws: { args: {}, execute: () => Promise.reject(new Error("no luck")) },
      picture: {
        args: {},
        execute: async (_: any, ctx: any) => {
          ctx.metadata({ title: "a dot", metadata: { a: 1 } })
          return { output: "", metadata: { b: 2 }, attachments: [{ type: "file", mime: "image/png", url: "data:image/png;base64," + png }] }
        },
      },
      waits: {
        args: {},
        execute: (_: any, ctx: any) =>
          new Promise((resolve) => {
            ctx.metadata({ title: "waiting" })
            ctx.abort.addEventListener("abort", () => resolve("aborted"))
          }),
      },
      asks: { args: {}, execute: async (_: any, ctx: any) => (await ctx.ask({ permission: "external", patterns: ["*"], always: [], metadata: {} }), "allowed") },
      events: { args: {}, execute: async () => `${seen.length} ${seen.every((n, i) => n === i) ? "in order" : "in disorder"}` },
    },
  }
  for (const name of two) hooks[name] = async (a: any, b: any) => void (b ?? a).list?.push("good " + name)
  return hooks
}
