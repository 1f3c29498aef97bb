# The interposer: libcuda.so.1 for x86-64, and cross-built for arm64. Included by the top Makefile.
#   interpose         build/lib/heddle/libcuda.so.1
#   interpose-arm64   build/lib/heddle-aarch64/libcuda.so.1
#   test-interpose    unit tests in three builds, and the snippets

CC ?= gcc
BUILD ?= build
CFLAGS_STRICT ?= -std=c11 -Wall -Wextra -Werror -Wshadow -Wconversion -Wvla -Wmissing-prototypes \
	-Wstrict-prototypes -fvisibility=hidden -fno-common
CC_ARM64 ?= aarch64-linux-gnu-gcc
HEDDLE_VERSION ?= 0.1.0

INTERPOSE_SOURCES := $(wildcard interpose/src/*.c)
INTERPOSE_HEADERS := $(wildcard interpose/src/*.h interpose/include/heddle/*.h)
INTERPOSE_GENERATED := interpose/gen/symbols.inc interpose/gen/libcuda.map
INTERPOSE_CPPFLAGS := -D_GNU_SOURCE -DHEDDLE_BUILD='"$(HEDDLE_VERSION)"' -Iinterpose/include \
	-Iinterpose/src
# A shared object that is loaded late may still use the loader's spare thread-local space.
INTERPOSE_TLS ?= -ftls-model=initial-exec
INTERPOSE_CFLAGS := $(CFLAGS_STRICT) -O2 -g -fPIC -fno-plt -fno-stack-protector $(INTERPOSE_TLS)
# nodelete: the helper thread runs in this library. now: no lazy binding in the launch path.
INTERPOSE_LDFLAGS := -shared -Wl,-soname,libcuda.so.1 -Wl,--version-script=interpose/gen/libcuda.map \
	-Wl,-z,defs -Wl,-z,now -Wl,-z,relro -Wl,-z,nodelete -Wl,-z,noexecstack -Wl,-Bsymbolic

C_SOURCES += $(INTERPOSE_SOURCES)
C_HEADERS += $(INTERPOSE_HEADERS)

INTERPOSE_LIB := $(BUILD)/lib/heddle/libcuda.so.1
INTERPOSE_LIB_ARM64 := $(BUILD)/lib/heddle-aarch64/libcuda.so.1

# $(call interpose_objects,folder below BUILD/obj,machine)
interpose_objects = $(patsubst interpose/src/%.c,$(BUILD)/obj/$(1)/%.o,$(INTERPOSE_SOURCES)) \
	$(BUILD)/obj/$(1)/trampoline_$(2).o

$(BUILD)/obj/interpose/%.o: interpose/src/%.c $(INTERPOSE_HEADERS) $(INTERPOSE_GENERATED)
	@mkdir -p $(@D)
	$(CC) $(INTERPOSE_CFLAGS) $(INTERPOSE_CPPFLAGS) -c -o $@ $<

$(BUILD)/obj/interpose/%.o: interpose/src/%.S $(INTERPOSE_GENERATED)
	@mkdir -p $(@D)
	$(CC) -c -o $@ $<

$(BUILD)/obj/interpose-arm64/%.o: interpose/src/%.c $(INTERPOSE_HEADERS) $(INTERPOSE_GENERATED)
	@mkdir -p $(@D)
	$(CC_ARM64) $(INTERPOSE_CFLAGS) $(INTERPOSE_CPPFLAGS) -c -o $@ $<

$(BUILD)/obj/interpose-arm64/%.o: interpose/src/%.S $(INTERPOSE_GENERATED)
	@mkdir -p $(@D)
	$(CC_ARM64) -c -o $@ $<

$(INTERPOSE_LIB): $(call interpose_objects,interpose,x86_64)
	@mkdir -p $(@D)
	$(CC) $(INTERPOSE_LDFLAGS) -o $@.new $^ -ldl -lpthread
	mv $@.new $@

$(INTERPOSE_LIB_ARM64): $(call interpose_objects,interpose-arm64,aarch64)
	@mkdir -p $(@D)
	$(CC_ARM64) $(INTERPOSE_LDFLAGS) -o $@.new $^ -ldl -lpthread
	mv $@.new $@

.PHONY: interpose interpose-arm64 test-interpose
interpose: $(INTERPOSE_LIB)
interpose-arm64: $(INTERPOSE_LIB_ARM64)
