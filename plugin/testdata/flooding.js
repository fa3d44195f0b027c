import { writeSync } from "node:fs"

const lines = {
  messages: '{"fault":"again"}\n'.repeat(100),
  nonsense: "nonsense\n{}\n[1]\n",
  line: "x".repeat(1 << 20),
}
export const Flooding = async () => ({
  tool: {
    flood: {
      args: { what: { type: "string" } },
      execute: async ({ what }) => {
        for (;;)
          try {
            writeSync(1, lines[what])
          } catch (e) {
            if (e.code !== "EAGAIN") throw e
          }
      },
    },
  },
})
