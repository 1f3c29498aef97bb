# heddle-hog: what `heddle probe` runs beside a workload, to see how much it suffers.

CC ?= gcc
BUILD ?= build
CFLAGS_STRICT ?= -std=c11 -Wall -Wextra -Werror -Wshadow -Wconversion -Wvla -Wmissing-prototypes \
	-Wstrict-prototypes -fvisibility=hidden -fno-common

HOG_SOURCE := interpose/hog/heddle-hog.c
HOG_PTX := interpose/hog/hogs.ptx interpose/hog/tensor.ptx
C_SOURCES += $(HOG_SOURCE)

.PHONY: hog
hog: $(BUILD)/lib/heddle/heddle-hog ## the program that `heddle probe` runs beside a workload
interpose: hog

$(BUILD)/lib/heddle/heddle-hog: $(HOG_SOURCE) $(HOG_PTX)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_STRICT) -D_GNU_SOURCE -O2 -g $(CFLAGS) $(LDFLAGS) -o $@ $< -ldl
