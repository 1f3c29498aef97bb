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

C_SOURCES += $(PLAY_SOURCES) $(wildcard $(PLAY_DIR)/test/*.c)
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

test-play: play $(PLAY_TESTS:%=$(BUILD)/test/play/plain/%) \
		$(PLAY_TESTS:%=$(BUILD)/test/play/sanitized/%) ## tests of the player
	@set -e; for t in $(filter $(BUILD)/test/play/%,$^); do \
		echo "$$t"; $$t $(PLAY_DIR)/workloads; done
