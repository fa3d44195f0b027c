//go:build !race

package store_test

// mutations is how many kinds of damage [TestDamage] tries.
const mutations = 120
