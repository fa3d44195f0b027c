export const Client = async ({ client, serverUrl }, { modules } = {}) => {
  const title = (await client.session.get({ path: { id: "ses_0" } })).data.id // also while it begins
  return {
    tool: {
      talk: {
        args: {},
        execute: async () => {
          const made = await client.session.create({ body: { title } })
          const prompted = await client.session.prompt({ path: { id: made.data.id }, body: { parts: [] } })
          const gone = await client.session.get({ path: { id: "gone" } })
          await client.app.log({ body: { service: "s", level: "info", message: "m" } })
          return { output: [made.data.id, prompted.data.id, gone.error !== undefined && gone.data === undefined, !("_client" in client) === (modules === "none")] }
        },
      },
      stream: {
        args: {},
        execute: async () => {
          const leave = new AbortController()
          const { stream } = await client.event.subscribe({ signal: leave.signal })
          const seen = []
          for await (const event of stream) if (seen.push(event.n) === 3) break
          leave.abort()
          const big = await (await fetch(new URL("/big", serverUrl))).text()
          const empty = await fetch(serverUrl.href + "empty", { method: "POST", body: "x", headers: { "X-Asked": "yes" } })
          const stop = new AbortController()
          const stopped = fetch(new Request(new URL("/event", serverUrl)), { signal: stop.signal }).then(async (r) => (setTimeout(() => stop.abort(), 10), await r.text()), String)
          const why = await stopped.catch((e) => e.name)
          const broken = await fetch(new URL("/broken", serverUrl)).then((r) => r.text(), (e) => e.message)
          return { output: [seen, big.length, new Set(big).size, empty.status, empty.headers.get("x-answered"), why, broken] }
        },
      },
      unread: {
        args: {},
        execute: async () => {
          const all = []
          for (let i = 0; i < 17; i++) all.push((await fetch(new URL("/big", serverUrl))).status)
          return all.join(" ")
        },
      },
    },
  }
}
