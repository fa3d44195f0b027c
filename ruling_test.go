package centurion

import "testing"

// ORCH-5: a verdict is found where reviewers write it, and nowhere else.
func TestRulingOf(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]Ruling{
		// The word begins the answer.
		"PASS":                                 RulingPass,
		"PASS.":                                RulingPass,
		"Pass":                                 RulingPass,
		"pass\n":                               RulingPass,
		"PASSED":                               RulingPass,
		"**PASS**":                             RulingPass,
		"**FAIL**":                             RulingFail,
		"`FAIL`":                               RulingFail,
		"# FAIL\n\na.go:3 is wrong":            RulingFail,
		"> PASS":                               RulingPass,
		"- PASS":                               RulingPass,
		"[PASS]":                               RulingPass,
		"✅ PASS":                               RulingPass,
		"FAIL ❌":                               RulingFail,
		"PASS: it is what was asked for":       RulingPass,
		"**FAIL**: a.go is wrong":              RulingFail,
		"**FAIL** nothing works":               RulingFail,
		"FAIL — main.go:3, the empty case":     RulingFail,
		"PASS - all 12 tests passed, 0 failed": RulingPass,
		"FAIL: the tests pass, but main.go:3 divides by zero": RulingFail,
		"PASS, with two remarks":                              RulingPass,
		"Pass. No test fails without a reason":                RulingNone, // mixed case and both words: it is asked for again
		"PASS\n- FAIL: printer case was looked at":            RulingPass,
		"FAIL\nPASS: the parser\nFAIL: the printer":           RulingFail,
		// A label.
		"Verdict: PASS":                       RulingPass,
		"Verdict: FAIL.":                      RulingFail,
		"**Verdict:** PASS":                   RulingPass,
		"**Verdict**: **FAIL**":               RulingFail,
		"## Verdict: FAIL":                    RulingFail,
		"Verdict – PASS":                      RulingPass,
		"Result: fail":                        RulingFail,
		"Result: PASS - nothing to complain":  RulingPass,
		"Final verdict: ✅ PASS":               RulingPass,
		"Overall result: passed":              RulingPass,
		"Review of T1: PASS":                  RulingPass,
		"Verdict for item T3: FAIL, see a.go": RulingFail,
		"The verdict is **PASS**":             RulingPass,
		"My verdict is a FAIL.":               RulingFail,
		"Status: PASS all is there":           RulingPass,
		"- Verdict: PASS\n- a.go looks fine":  RulingPass,
		// Further down.
		"I read a.go and ran the tests.\n\nVerdict: PASS":            RulingPass,
		"# Review\n\n**Verdict**\n\nFAIL\n\n- a.go:3":                RulingFail,
		"I looked at T1.\nFAIL: a.go:3 is wrong":                     RulingFail,
		"Verdict:\nPASS":                                             RulingPass,
		"1\n2\n3\n4\n5\n6\n7\nVerdict: FAIL":                         RulingFail,
		"1\n2\n3\n4\n5\n6\n7\n**PASS**\n":                            RulingPass,
		"1\n2\n3\n4\n5\n6\nPASS\n\n(The host ended `sleep 9` here.)": RulingPass,
		"1\n2\n3\n4\n5\nVerdict: PASS\nmore\nand more":               RulingNone,
		// No verdict.
		"":                                               RulingNone,
		"looks good to me":                               RulingNone,
		"LGTM":                                           RulingNone,
		"I cannot say PASS or FAIL yet":                  RulingNone,
		"PASS or FAIL? I cannot tell.":                   RulingNone,
		"PASS/FAIL":                                      RulingNone,
		"Verdict: PASS/FAIL":                             RulingNone,
		"Verdict: PASS or FAIL":                          RulingNone,
		"Verdict: not a PASS":                            RulingNone,
		"Not a PASS yet":                                 RulingNone,
		"PASS?":                                          RulingNone,
		"tests PASS but main.go is wrong":                RulingNone,
		"The tests pass.":                                RulingNone,
		"All tests PASS.":                                RulingNone,
		"Result of the tests: PASS":                      RulingNone,
		"Tests: PASS":                                    RulingNone,
		"T1: PASS\nT2: FAIL":                             RulingNone,
		"PASS if the typo is mended":                     RulingNone,
		"PASS (once a.go is formatted)":                  RulingNone,
		"PASS cannot be given":                           RulingNone,
		"Pass the file to the parser first":              RulingNone,
		"Failed to run the tests: no go command":         RulingNone,
		"FAIL-safe code, well done":                      RulingNone,
		"PASSING tests are not enough":                   RulingNone,
		"Passed: 12, failed: 0":                          RulingNone,
		"PASS: 12\nFAIL: 0":                              RulingNone,
		"| T1 | PASS |":                                  RulingNone,
		"PASS: parser\nVerdict: FAIL":                    RulingNone,
		"PASS\n\na\nb\nc\nd\ne\n\nFinal verdict: FAIL":   RulingNone,
		"I ran it:\n```\nPASS\nok  calc 0.1s\n```\nHm.":  RulingNone,
		"I ran it\nPASS\nok  \tcalc\t0.004s\nand wonder": RulingNone,
		"I ran `go test`:\nPASS\nand that is all I did":  RulingNone,
		"--- PASS: TestSub (0.00s)\nPASS\nand so on":     RulingNone,
	} {
		if got := RulingOf(answer); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
}
