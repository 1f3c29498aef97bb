/* The commands of the tool: each takes its own arguments, its name first, and returns the exit
 * status: 0, 1 for a failure, 2 for wrong use. */
#ifndef SOFTGPU_TOOL_H
#define SOFTGPU_TOOL_H

#include <stdint.h>

struct sg_node;

int tool_open(struct sg_node *node, const char *command, const char *gpus);

int tool_names(int argc, char **argv);
int tool_replay(int argc, char **argv);
int tool_create(int argc, char **argv);
int tool_show(int argc, char **argv);
int tool_fault(int argc, char **argv);
int tool_set(int argc, char **argv);
int tool_stop(int argc, char **argv);
int tool_mig(int argc, char **argv);
int tool_mig_show(int argc, char **argv);
int tool_reset(int argc, char **argv);
int tool_reboot(int argc, char **argv);

/* How a GPU is divided, for people or as JSON; the state is locked. */
void tool_draw_mig(const struct sg_node *node, uint32_t device);
void tool_settle_mig(const struct sg_node *node);
void tool_json_mig(const struct sg_node *node, uint32_t device);

#endif /* SOFTGPU_TOOL_H */
