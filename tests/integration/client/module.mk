# The scripted client that the integration and crash tests drive.

CC ?= gcc
BUILD ?= build
CFLAGS_STRICT ?= -std=c11 -Wall -Wextra -Werror -Wshadow -Wconversion -Wvla -Wmissing-prototypes \
	-Wstrict-prototypes -fvisibility=hidden -fno-common

CLIENT_DIR := tests/integration/client
CLIENT_SOURCES := $(wildcard $(CLIENT_DIR)/*.c)
CLIENT_HEADERS := $(wildcard $(CLIENT_DIR)/*.h)

C_SOURCES += $(CLIENT_SOURCES)
C_HEADERS += $(CLIENT_HEADERS)

.PHONY: test-client
test-client: $(BUILD)/test/heddle-test-client ## the scripted client of the integration tests

$(BUILD)/test/heddle-test-client: $(CLIENT_SOURCES) $(CLIENT_HEADERS) interpose/include/heddle/yield.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_STRICT) -D_GNU_SOURCE -Iinterpose/include -O2 -g $(CFLAGS) -o $@ $(CLIENT_SOURCES) -ldl -lpthread
