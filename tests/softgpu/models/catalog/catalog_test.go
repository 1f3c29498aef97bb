package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestModels(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, m := range all {
		keys = append(keys, m.Key)
	}
	want := []string{"A100-40", "A100-80", "A30", "B200", "H100", "H200", "RTX-PRO-6000"}
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
}

func TestLookup(t *testing.T) {
	m, err := Lookup("a100-80")
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "NVIDIA A100-SXM4-80GB" || m.SMs != 108 {
		t.Errorf("a100-80 is %s with %d SMs", m.Name, m.SMs)
	}
	if _, err := Lookup("K80"); err == nil {
		t.Error("an unknown model was found")
	}
}

func TestParseRefuses(t *testing.T) {
	good, err := data.ReadFile("data/a30.toml")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, from, to string }{
		{"an unknown key", "sms = 56", "sms = 56\nsmss = 1"},
		{"no SMs", "sms = 56", "sms = 0"},
		{"a placement beyond the end", "starts = [0, 2], size = 2", "starts = [0, 3], size = 2"},
		{"a profile larger than the device", "slices = 4, memory_mib", "slices = 5, memory_mib"},
		{"an id that repeats", "id = 21", "id = 14"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bad := bytes.Replace(good, []byte(tt.from), []byte(tt.to), 1)
			if bytes.Equal(bad, good) {
				t.Fatalf("%q is not in the data", tt.from)
			}
			if _, err := Parse(bad); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	good, err := data.ReadFile("data/h100.toml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("key = \"X\""))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Parse(text)
		if err == nil && (m.Key == "" || m.SMs <= 0) {
			t.Errorf("accepted %+v", m)
		}
	})
}

func TestGeneratedSourceIsUpToDate(t *testing.T) {
	tests := []struct {
		path     string
		generate func() ([]byte, error)
	}{
		{"../models.c", CSource},
		{"../../../../runtime/sim/device/models.go", GoSource},
	}
	for _, tt := range tests {
		t.Run(filepath.Base(tt.path), func(t *testing.T) {
			want, err := tt.generate()
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(tt.path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("stale, run go generate ./tests/softgpu/models/catalog (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAgainstMeasuredProfiles compares our data with a table of MIG profiles captured from real boards,
// where the checkout has it beside it.
func TestAgainstMeasuredProfiles(t *testing.T) {
	dir := os.Getenv("HEDDLE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "..", "shared")
	}
	text, err := os.ReadFile(filepath.Join(dir, "data", "mig-profiles.json"))
	if err != nil {
		t.Skipf("no table of captured profiles: %v", err)
	}
	var table struct {
		GPUs []struct {
			PCI      []string `json:"pci_device_ids"`
			Profiles []struct {
				Name      string   `json:"name"`
				ID        int      `json:"gi_profile_id"`
				Enum      int      `json:"nvml_profile_enum"`
				Slices    int      `json:"compute_slices"`
				GiB       *float64 `json:"memory_gib"`
				Instances int      `json:"max_instances"`
				SM        *int     `json:"sm"`
				Placement struct {
					Starts []int `json:"starts"`
					Size   int   `json:"size"`
				} `json:"placements"`
			} `json:"profiles"`
		} `json:"gpus"`
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		pci := fmt.Sprintf("0x%04X", m.PCIDevice)
		found := false
		for _, gpu := range table.GPUs {
			if !strings.Contains(strings.Join(gpu.PCI, " "), pci) {
				continue
			}
			found = true
			if len(gpu.Profiles) != len(m.MIG.Profiles) {
				t.Errorf("%s: %d profiles, captured %d", m.Key, len(m.MIG.Profiles), len(gpu.Profiles))
				continue
			}
			for i, want := range gpu.Profiles {
				got := m.MIG.Profiles[i]
				if got.Name != want.Name || got.ID != want.ID || got.Enum != want.Enum ||
					got.Slices != want.Slices || got.Instances != want.Instances ||
					got.Size != want.Placement.Size || !cmp.Equal(got.Starts, want.Placement.Starts) ||
					want.SM != nil && got.SMs != *want.SM {
					t.Errorf("%s: profile %+v, captured %+v", m.Key, got, want)
				}
				// Captures print GiB with two digits.
				if gib := float64(got.MemoryMiB) / 1024; want.GiB != nil && (gib-*want.GiB > 0.006 || *want.GiB-gib > 0.006) {
					t.Errorf("%s %s: %.4f GiB, captured %.2f", m.Key, got.Name, gib, *want.GiB)
				}
			}
		}
		if !found {
			t.Errorf("%s: PCI device %s is not in the table", m.Key, pci)
		}
	}
}
