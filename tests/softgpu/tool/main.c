/* softgpu: looks at and steers a simulated node. */
#include <stdio.h>
#include <string.h>

#include "tool.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"create", tool_create,
     "create [GPUS]              a new node (SOFTGPU_STATE): H100, 2xA100-80, ..."},
    {"show", tool_show,
     "show [--json]              devices, processes, counters, faults, missing names"},
    {"set", tool_set,
     "set DEVICE mps on|off      whether new processes are clients of a MPS server"},
    {"fault", tool_fault,
     "fault ENTRY RESULT [--after N] [--times N] [--pid P] [--gpu N] [--delay MS] [--late] "
     "[--kill]\n"
     "        [--sticky] [--always] [--random SEED PROBABILITY]\n"
     "  fault --clear              an entry answers RESULT (0: as without); --sticky loses the\n"
     "                             context too; --late comes after a change of NVML's is made"},
    {"mig", tool_mig,
     "mig show [--json]          how the GPUs are divided\n"
     "  mig mode GPU on|off        as a program would that is not under test, as the next three\n"
     "  mig create GPU PROFILE[:START] [--bare]\n"
     "                             a GPU instance, and in it (unless bare) a compute instance\n"
     "  mig create GPU/GI COMPUTE_PROFILE[:START]\n"
     "  mig destroy GPU[/GI[/CI]]\n"
     "  mig hold GPU[/GI[/CI]]     keeps it in use until its input ends\n"
     "  mig layouts MODEL          every set of GPU instances that may exist, as JSON"},
    {"reset", tool_reset,
     "reset GPU                  forgets its instances; a pending MIG mode becomes the mode"},
    {"reboot", tool_reboot,
     "reboot                     the same for all, and MIG is off where boards do not keep it"},
    {"stop", tool_stop,
     "stop PID                   SIGSTOP, at a moment when the process holds up no other"},
    {"replay", tool_replay,
     "replay FILE                start and end of a script's operations, simulated"},
    {"names", tool_names,
     "names [--until VERSION]    exported names, of a driver up to that version"},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    FILE *out = argc > 1 && strcmp(argv[1], "--help") == 0 ? stdout : stderr;
    fprintf(out, "usage: softgpu COMMAND ...\n");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        fprintf(out, "  %s\n", commands[i].help);
    }
    return out == stdout ? 0 : 2;
}
