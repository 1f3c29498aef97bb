package clock

import "testing"

func TestSteadyBelievesProcessorAndKernelTogether(t *testing.T) {
	const good = "processor\t: 0\nflags\t\t: fpu tsc constant_tsc nonstop_tsc\n"
	tests := []struct {
		name    string
		cpuinfo string
		sources string
		want    bool
	}{
		{"both say yes", good, "tsc kvm-clock \n", true},
		{"two processors say yes", good + "\n" + good, "tsc\n", true},
		{"one of two processors stops it in sleep", good + "\nflags\t: tsc constant_tsc\n", "tsc\n", false},
		{"the speed changes", "flags\t: tsc nonstop_tsc\n", "tsc\n", false},
		{"the kernel gave it up", good, "hpet acpi_pm\n", false},
		{"another clock only sounds like it", good, "tsc-early\n", false},
		{"no flags at all", "processor\t: 0\n", "tsc\n", false},
		{"nothing is known", "", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := steady([]byte(tt.cpuinfo), []byte(tt.sources)); got != tt.want {
				t.Errorf("steady = %v, want %v", got, tt.want)
			}
		})
	}
}
