package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPolicyShowsAndChanges(t *testing.T) {
	const header = "GPU       NAME                                   POLICY     FROM     UUID\n"
	tests := []struct {
		name  string
		args  []string
		want  result
		calls []string
	}{
		{
			"one device", []string{"timeslice", "--device", "0"},
			result{stdout: "GPU  NAME                   POLICY     FROM  UUID\n" +
				"0    NVIDIA H100 80GB HBM3  timeslice  set   " + uuidA + "\n"},
			[]string{"policy timeslice " + uuidA},
		},
		{
			"back to the configuration, as JSON", []string{"--reset", "--device", uuidA, "--json"},
			result{stdout: `{
  "devices": [
    {
      "uuid": "` + uuidA + `",
      "device": "0",
      "name": "NVIDIA H100 80GB HBM3",
      "policy": "heddle",
      "policy_origin": "default"
    }
  ]
}
`}, []string{"policy  " + uuidA},
		},
		{
			"a policy that there is not", []string{"fairest"},
			result{code: 2, stderr: "heddle policy: no policy is called \"fairest\"; there are heddle, priority, orion, fikit, fair, timeslice, rate, none\n"},
			nil,
		},
		{
			"two at once", []string{"fair", "none"},
			result{code: 2, stderr: "heddle policy: give one policy, not 2\n"}, nil,
		},
		{
			"both", []string{"fair", "--reset"},
			result{code: 2, stderr: "heddle policy: give a policy or --reset, not both\n"}, nil,
		},
		{
			"a device that there is not", []string{"fair", "--device", "7"},
			result{code: 2, stderr: "heddle policy: --device: no device 7 on this node (heddle gpus lists them)\n"}, nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := startFake(t, true)
			got := invoke(t, d.env(), screen{}, append([]string{"policy"}, tt.args...)...)
			if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.calls, d.changes()); diff != "" {
				t.Error(diff)
			}
		})
	}
	d := startFake(t, true)
	got := invoke(t, d.env(), screen{}, "policy")
	if len(got.stdout) < len(header) || got.code != 0 {
		t.Errorf("%+v", got)
	}
	denied := startFake(t, false)
	if got := invoke(t, denied.env(), screen{}, "policy", "fair"); got.code != 1 || len(denied.changes()) != 0 {
		t.Errorf("without rights: %+v, %v", got, denied.changes())
	}
}
