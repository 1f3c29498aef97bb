# The workload player: heddle-play, a plain client of the CUDA driver API.

CC ?= gcc
BUILD ?= build
CFLAGS_STRICT ?= -std=c11 -Wall -Wextra -Werror -Wshadow -Wconversion -Wvla -Wmissing-prototypes \
	-Wstrict-prototypes -fvisibility=hidden -fno-common

PLAY_DIR := tests/play
PLAY_SOURCES := $(wildcard $(PLAY_DIR)/src/*.c)
PLAY_HEADERS := $(wildcard $(PLAY_DIR)/src/*.h)
PLAY_UNIT_SOURCES := $(filter-out $(PLAY_DIR)/src/main.c,$(PLAY_SOURCES))
PLAY_TABLES := $(notdir $(wildcard $(PLAY_DIR)/workloads/*.csv))
PLAY_TESTS := $(patsubst $(PLAY_DIR)/test/%.c,%,$(wildcard $(PLAY_DIR)/test/test_*.c))
PLAY_CFLAGS = $(CFLAGS_STRICT) -D_GNU_SOURCE -O2 -g -I$(PLAY_DIR)/src
PLAY_LIBS := -ldl -lm -lpthread
PLAY_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

C_SOURCES += $(PLAY_SOURCES) $(wildcard $(PLAY_DIR)/test/*.c $(PLAY_DIR)/test/*/*.c)
C_HEADERS += $(PLAY_HEADERS) $(wildcard $(PLAY_DIR)/test/*.h)

.PHONY: play test-play
play: $(BUILD)/bin/heddle-play $(PLAY_TABLES:%=$(BUILD)/share/heddle/workloads/%) ## the workload player

$(BUILD)/share/heddle/workloads/%.csv: $(PLAY_DIR)/workloads/%.csv
	@mkdir -p $(@D)
	cp $< $@

$(BUILD)/bin/heddle-play: $(PLAY_SOURCES) $(PLAY_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(PLAY_CFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(PLAY_SOURCES) $(PLAY_LIBS)

$(BUILD)/test/play/plain/%: $(PLAY_DIR)/test/%.c $(PLAY_UNIT_SOURCES) $(PLAY_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(PLAY_CFLAGS) -o $@ $< $(PLAY_UNIT_SOURCES) $(PLAY_LIBS)

$(BUILD)/test/play/sanitized/%: $(PLAY_DIR)/test/%.c $(PLAY_UNIT_SOURCES) $(PLAY_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(PLAY_CFLAGS) $(PLAY_SANITIZE) -o $@ $< $(PLAY_UNIT_SOURCES) $(PLAY_LIBS)

$(BUILD)/test/play/sanitized/heddle-play: $(PLAY_SOURCES) $(PLAY_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(PLAY_CFLAGS) $(PLAY_SANITIZE) -o $@ $(PLAY_SOURCES) $(PLAY_LIBS)

$(BUILD)/test/play/driver/libcuda.so.1: $(PLAY_DIR)/test/driver/driver.c $(PLAY_DIR)/src/driver.h
	@mkdir -p $(@D)
	$(CC) $(PLAY_CFLAGS) -fPIC -shared -Wl,-soname,libcuda.so.1 -o $@ $<

PLAY_UNIT_TESTS := $(PLAY_TESTS:%=$(BUILD)/test/play/plain/%) $(PLAY_TESTS:%=$(BUILD)/test/play/sanitized/%)

test-play: play $(PLAY_UNIT_TESTS) $(BUILD)/test/play/sanitized/heddle-play \
		$(BUILD)/test/play/driver/libcuda.so.1 ## tests of the player
	@set -e; for t in $(PLAY_UNIT_TESTS); do echo "$$t"; $$t $(PLAY_DIR)/workloads; done
	@set -e; for p in bin test/play/sanitized; do echo "player.sh $(BUILD)/$$p/heddle-play"; \
		$(PLAY_DIR)/test/player.sh $(BUILD)/$$p/heddle-play $(BUILD)/test/play/driver $(PLAY_DIR)/workloads; done
