export const Syntax = async () => { return {
