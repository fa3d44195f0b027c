package verify

import (
	"slices"
	"testing"
)

func TestWeakened(t *testing.T) {
	t.Parallel()
	const goTest = "package x\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {\n\tif A() != 1 {\n\t\tt.Error(\"a\")\n\t}\n}\n"
	const goMore = goTest + "\nfunc TestB(t *testing.T) {\n\tif B() != 1 {\n\t\tt.Error(\"b\")\n\t}\n}\n"
	tests := []struct {
		name          string
		before, after files
		want          []string
	}{
		{"nothing", files{"a_test.go": goTest}, files{"a_test.go": goMore}, nil},
		{"a test file", files{"a_test.go": goTest}, files{}, []string{"a_test.go was removed"}},
		{"a test file that was moved", files{"a_test.go": goTest}, files{"b/a_test.go": goTest}, nil},
		{"a fixture", files{"testdata/x": "1\n"}, files{}, []string{"testdata/x was removed"}},
		{"a test", files{"a_test.go": goMore}, files{"a_test.go": goTest}, []string{"a_test.go: TestB was removed"}},
		{"a renamed test", files{"a_test.go": "func TestA(t *testing.T) {\n\tt.Error(1)\n}\n"}, files{"a_test.go": "func TestAllow(t *testing.T) {\n\tt.Error(1)\n}\n"}, nil},
		{"a renamed test that checks less", files{"a_test.go": "func TestA(t *testing.T) {\n\tt.Error(1)\n}\n"}, files{"a_test.go": "func TestAllow(t *testing.T) {\n}\n"}, []string{"a_test.go: TestA was removed"}},
		{"a case", files{"a_test.go": "\tt.Run(\"one\", one)\n\tt.Run(\"two\", two)\n"}, files{"a_test.go": "\tt.Run(\"one\", one)\n"}, []string{"a_test.go: two was removed"}},
		{"an assertion", files{"test_a.py": "def test_a():\n    assert a() == 1\n    assert b() == 1\n"}, files{"test_a.py": "def test_a():\n    a()\n    assert b() == 1\n"}, []string{"test_a.py: 1 assertion removed and 0 added"}},
		{"an assertion that became a comment", files{"test_a.py": "def test_a():\n    assert a() == 1\n"}, files{"test_a.py": "def test_a():\n    # assert a() == 1\n    a()\n"}, []string{"test_a.py: 1 assertion removed and 0 added"}},
		{"an assertion that was changed", files{"test_a.py": "def test_a():\n    assert a() == 1\n"}, files{"test_a.py": "def test_a():\n    assert a() == 2\n"}, nil},
		{"a skip", files{"a_test.go": goTest}, files{"a_test.go": "package x\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {\n\tt.Skip(\"later\")\n\tif A() != 1 {\n\t\tt.Error(\"a\")\n\t}\n}\n"}, []string{"a_test.go: a skip was added: t.Skip(\"later\")"}},
		{"only", files{"a.test.js": "it('a', () => { expect(a()).toBe(1) })\n"}, files{"a.test.js": "it.only('a', () => { expect(a()).toBe(1) })\n"}, []string{"a.test.js: a skip was added: it.only('a', () => { expect(a()).toBe(1) })"}},
		{"xfail", files{"test_a.py": "def test_a():\n    assert a()\n"}, files{"test_a.py": "@pytest.mark.xfail\ndef test_a():\n    assert a()\n"}, []string{"test_a.py: a skip was added: @pytest.mark.xfail"}},
		{"ignore", files{"src/lib.rs": "#[test]\nfn a() { assert!(b()) }\n"}, files{"src/lib.rs": "#[test]\n#[ignore]\nfn a() { assert!(b()) }\n"}, []string{"src/lib.rs: a skip was added: #[ignore]"}},
		{"disabled", files{"ATest.java": "@Test\nvoid testA() { assertTrue(a()); }\n"}, files{"ATest.java": "@Test\n@Disabled\nvoid testA() { assertTrue(a()); }\n"}, []string{"ATest.java: a skip was added: @Disabled"}},
		{"a script of npm", files{"package.json": "{\n  \"scripts\": {\n    \"test\": \"jest\"\n  }\n}\n"}, files{"package.json": "{\n  \"scripts\": {\n    \"test\": \"true\"\n  }\n}\n"}, []string{"package.json: the script was changed: \"test\": \"jest\""}},
		{"a new script of npm", files{"package.json": "{\n  \"scripts\": {\n    \"test\": \"jest\"\n  }\n}\n"}, files{"package.json": "{\n  \"scripts\": {\n    \"test\": \"jest\",\n    \"lint\": \"eslint\"\n  }\n}\n"}, nil},
		{"a target", files{"Makefile": "test:\n\tgo test ./...\n\tgo vet ./...\n"}, files{"Makefile": "test:\n\tgo test ./...\n"}, []string{"Makefile: the target test was changed"}},
		{"another target", files{"Makefile": "test:\n\tgo test ./...\n\nrun:\n\tgo run .\n"}, files{"Makefile": "test:\n\tgo test ./...\n\nrun:\n\tgo run ./x\n"}, nil},
		{"a threshold", files{"jest.config.js": "  branches: 80,\n"}, files{"jest.config.js": "  branches: 20,\n"}, []string{"jest.config.js: a threshold went from 80 to 20"}},
		{"a higher threshold", files{"jest.config.js": "  branches: 80,\n"}, files{"jest.config.js": "  branches: 90,\n"}, nil},
		{"the script that the check runs", files{"check.sh": "test -f a\n"}, files{"check.sh": "test -f b\n"}, []string{"check.sh was changed, which the check runs"}},
		{"a failure passed over", files{"run.sh": "go test ./...\n"}, files{"run.sh": "go test ./... || true\n"}, []string{"run.sh: a failure is passed over: go test ./... || true"}},
		{"a skip that was moved", files{"test_a.py": "@skip\ndef test_a():\n    assert a()\n\nx = 1\n"}, files{"test_a.py": "x = 1\n\n    @skip\ndef test_a():\n    assert a()\n"}, nil},
		{"work", files{"a.go": "package x\n\nfunc TestData() { t.Error() }\n"}, files{"a.go": "package x\n"}, nil},
	}
	for _, test := range tests {
		if got := weakened(diffTrees(test.before, test.after), "bash check.sh"); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}
