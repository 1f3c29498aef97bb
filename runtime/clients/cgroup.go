package clients

import (
	"slices"
	"strings"
)

// shortID is how many digits of a container's id people are shown.
const shortID = 12

// cgroupPath takes the path out of /proc/PID/cgroup: the one of the unified
// hierarchy if it says anything, else that of the memory controller, else the
// longest.
func cgroupPath(text []byte) string {
	unified, memory, longest := "", "", ""
	for line := range strings.Lines(string(text)) {
		controllers, path, ok := cgroupLine(line)
		if !ok {
			continue
		}
		switch controllers {
		case "":
			unified = path
		case "memory":
			memory = path
		}
		if len(path) > len(longest) {
			longest = path
		}
	}
	// With both hierarchies mounted, the unified one often holds only "/".
	for _, path := range []string{unified, memory} {
		if len(path) > 1 {
			return path
		}
	}
	return longest
}

// cgroupLine splits "4:memory:/path"; a path may hold colons itself.
func cgroupLine(line string) (controllers, path string, ok bool) {
	parts := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
	if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// containerID finds the innermost container in any of the paths. The engines
// write their 64 hexadecimal digits as the last part of the path, with a
// prefix, a suffix, or both:
//
//	/docker/ID
//	/system.slice/docker-ID.scope                      Docker, systemd driver
//	/kubepods.slice/.../cri-containerd-ID.scope        containerd under Kubernetes
//	/kubepods/burstable/podUID/ID                      the same, cgroupfs driver
//	/kubepods.slice/.../crio-ID.scope, crio-conmon-... CRI-O
//	/machine.slice/libpod-ID.scope/container           Podman
//	/system.slice/containerd.service/kubepods-pod.slice:cri-containerd:ID
//	/default/NAME, /NAMESPACE/ID                       containerd's own clients
func containerID(text []byte) string {
	for line := range strings.Lines(string(text)) {
		_, path, ok := cgroupLine(line)
		if !ok {
			continue
		}
		parts := strings.Split(path, "/")
		for _, part := range slices.Backward(parts) {
			if id := idIn(part); id != "" {
				return id[:shortID]
			}
		}
	}
	return ""
}

// idIn finds a whole run of exactly 64 hexadecimal digits.
func idIn(part string) string {
	const digits = 64
	run := 0
	for i := 0; i <= len(part); i++ {
		if i < len(part) && isHex(part[i]) {
			run++
			continue
		}
		if run == digits {
			return part[i-digits : i]
		}
		run = 0
	}
	return ""
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }
