import { z } from "zod"

export default { description: "The weather", args: { city: z.string() }, execute: async ({ city }: { city: string }) => `sunny in ${city}` }
export const later = { description: "", args: {}, execute: async () => "rain" }
