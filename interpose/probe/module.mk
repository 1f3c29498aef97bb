# heddle-probe: what `heddle doctor` starts under the interposer, and beside which it is installed.

CC ?= gcc
BUILD ?= build
CFLAGS_STRICT ?= -std=c11 -Wall -Wextra -Werror -Wshadow -Wconversion -Wvla -Wmissing-prototypes \
	-Wstrict-prototypes -fvisibility=hidden -fno-common

PROBE_SOURCE := interpose/probe/heddle-probe.c
C_SOURCES += $(PROBE_SOURCE)

.PHONY: probe
probe: $(BUILD)/lib/heddle/heddle-probe ## the program that `heddle doctor` starts under the interposer
interpose: probe

$(BUILD)/lib/heddle/heddle-probe: $(PROBE_SOURCE)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_STRICT) -D_GNU_SOURCE -O2 -g $(CFLAGS) $(LDFLAGS) -o $@ $< -ldl
