export const name = "no function"
