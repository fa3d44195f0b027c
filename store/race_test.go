//go:build race

package store_test

// mutations is small where the detector makes SQLite ten times slower.
const mutations = 24
