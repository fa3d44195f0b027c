export function fileOf(path) {
  return path.split("/").pop() // called with what plugins get, it throws
}
export const Helper = async () => ({ "shell.env": async () => {}, project: 1, helper: () => 2 })
