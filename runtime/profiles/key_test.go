package profiles

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/heddle-project/heddle/runtime/abi"
)

// TestNumbersAreThoseOfTheContract holds together what this package may not import and must equal.
func TestNumbersAreThoseOfTheContract(t *testing.T) {
	if tableEntries != abi.ProfileEntries || tableProbes != abi.ProfileProbes || tableShift != abi.ProfileShift {
		t.Errorf("a table of %d entries, %d probes, shift %d; the contract has %d, %d, %d", tableEntries, tableProbes,
			tableShift, abi.ProfileEntries, abi.ProfileProbes, abi.ProfileShift)
	}
}

// newRand prints its seed: a failure can be repeated by writing the seed here.
func newRand(tb testing.TB) *rand.Rand {
	tb.Helper()
	seed := rand.Uint64()
	tb.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// A keyVector is one line of tests/testdata/profile-keys.txt; the file explains its own form.
type keyVector struct {
	name                string
	grid, block         [3]uint32
	shared              uint32
	previous, key, pair uint64
}

var vectorsPath = filepath.Join("..", "..", "tests", "testdata", "profile-keys.txt")

func parseKeyVector(line string) (v keyVector, err error) {
	fields := strings.Split(line, "|")
	if len(fields) != 7 {
		return v, fmt.Errorf("%d fields", len(fields))
	}
	v.name = fields[0]
	for i, sides := range []*[3]uint32{&v.grid, &v.block} {
		if _, err := fmt.Sscanf(fields[1+i], "%d,%d,%d", &sides[0], &sides[1], &sides[2]); err != nil {
			return v, err
		}
	}
	shared, err := strconv.ParseUint(fields[3], 10, 32)
	if err != nil {
		return v, err
	}
	v.shared = uint32(shared)
	for i, word := range []*uint64{&v.previous, &v.key, &v.pair} {
		if *word, err = strconv.ParseUint(fields[4+i], 0, 64); err != nil {
			return v, err
		}
	}
	return v, nil
}

func TestKeysAreWhatTheVectorsSay(t *testing.T) {
	data, err := os.ReadFile(vectorsPath)
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for i, line := range strings.Split(string(data), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		v, err := parseKeyVector(line)
		if err != nil {
			t.Fatalf("line %d: %v", i+1, err)
		}
		count++
		key := LaunchKey(NameKey(v.name), v.grid, v.block, v.shared)
		if pair := PairKey(v.previous, key); key != v.key || pair != v.pair {
			t.Errorf("line %d: key %#x, pair %#x, want %#x, %#x", i+1, key, pair, v.key, v.pair)
		}
	}
	if count < 12 {
		t.Errorf("only %d vectors", count)
	}
}

// buildC compiles interpose/test/profile_keys.c.
func buildC(tb testing.TB) string {
	tb.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	if _, err := exec.LookPath(cc); err != nil {
		tb.Skipf("no C compiler: %v", err)
	}
	root := filepath.Join("..", "..", "interpose")
	program := filepath.Join(tb.TempDir(), "profile_keys")
	build := exec.Command(cc, "-std=c11", "-O2", "-I"+filepath.Join(root, "include"),
		filepath.Join(root, "test", "profile_keys.c"), "-o", program)
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("build the keys in C: %v\n%s", err, out)
	}
	return program
}

func TestKeysInCAreWhatTheVectorsSay(t *testing.T) {
	program := buildC(t)
	out, err := exec.Command(program, vectorsPath).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.txt")
	if err := os.WriteFile(wrong, []byte("saxpy|108,2,1|128,4,1|49152|1|0x1|0x2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(program, wrong).CombinedOutput(); err == nil {
		t.Errorf("a wrong key passes: %s", out)
	}
}

func TestKeysInGoAndInCAgree(t *testing.T) {
	const rounds = 20000
	cmd := exec.Command(buildC(t), "-")
	cmd.Stderr = os.Stderr
	r := newRand(t)
	word := func() uint32 { // small ones are the usual ones
		if r.IntN(4) == 0 {
			return r.Uint32()
		}
		return uint32(r.IntN(5))
	}
	var questions, want []byte
	for range rounds {
		name := make([]byte, r.IntN(300))
		for i := range name {
			name[i] = byte(r.Uint32())
		}
		grid, block := [3]uint32{word(), word(), word()}, [3]uint32{word(), word(), word()}
		shared, previous := word(), r.Uint64()>>r.IntN(64)
		for _, w := range append(append(grid[:], block[:]...), shared, uint32(len(name))) {
			questions = binary.NativeEndian.AppendUint32(questions, w)
		}
		questions = append(binary.NativeEndian.AppendUint64(questions, previous), name...)
		key := LaunchKey(NameKey(string(name)), grid, block, shared)
		want = binary.NativeEndian.AppendUint64(want, key)
		want = binary.NativeEndian.AppendUint64(want, PairKey(previous, key))
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan error, 1)
	go func() { // while the answers come in, so that no pipe stays full
		_, err := in.Write(questions)
		sent <- err
		in.Close()
	}()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(out)
	if err != nil {
		t.Error(err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d bytes of answers, want %d", len(got), len(want))
	}
	for i := 0; i < len(want); i += 16 {
		if string(got[i:i+16]) != string(want[i:i+16]) {
			t.Fatalf("question %d: C says key and pair %x, Go %x", i/16, got[i:i+16], want[i:i+16])
		}
	}
}

func TestProductsOfSidesSaturate(t *testing.T) {
	for _, tt := range []struct {
		sides [3]uint32
		want  uint64
	}{
		{[3]uint32{0, 5, 5}, 0},
		{[3]uint32{108, 2, 3}, 648},
		{[3]uint32{math.MaxUint32, math.MaxUint32, 1}, math.MaxUint32 * math.MaxUint32},
		{[3]uint32{math.MaxUint32, math.MaxUint32, 2}, math.MaxUint64},
	} {
		if got := product(tt.sides); got != tt.want {
			t.Errorf("product of %v is %d, want %d", tt.sides, got, tt.want)
		}
	}
}
