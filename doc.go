// Package centurion holds the nouns and errors that every other package of the program speaks: missions, sessions,
// messages, tasks, receipts, events, and the identifiers that name them. It imports the standard library only and acts
// on nothing: no file, process, clock beyond the creation time inside an identifier, or network is touched here.
// The few helpers for text that most packages need (Clip, Count, Nearest) stand here too.
//
// Sessions, messages, parts and tool states marshal to the JSON shapes of OpenCode 1.18, so that an HTTP answer is a
// view of what is stored and never a translation of it.
package centurion
