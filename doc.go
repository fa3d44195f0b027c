// Package centurion has the nouns and errors shared by all packages of the program: missions, sessions, messages, tasks, receipts,
// events, and their identifiers. It imports only the standard library and does nothing by itself: it touches no file, process or
// network, and no clock except for the creation time in an identifier. The few text helpers that most packages need (Clip, Count,
// Nearest) are here, too.
//
// Sessions, messages, parts and tool states marshal to the JSON formats of OpenCode 1.18, so that an HTTP answer is a view of the
// stored data and needs no translation.
package centurion
