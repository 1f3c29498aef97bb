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

# ---- tests ----

INTERPOSE_TESTS := names text ledger log message stream attach
INTERPOSE_TEST_HEADERS := $(wildcard interpose/test/*.h)
INTERPOSE_FAKE := $(BUILD)/test/interpose/fake/libcuda.so.1
C_SOURCES += $(wildcard interpose/test/*.c)
C_HEADERS += $(INTERPOSE_TEST_HEADERS)

# Each flavour compiles everything for itself: TSan cannot be loaded with a library, so the logic is
# linked into the tests.
INTERPOSE_FLAGS_plain := -O1 -g
INTERPOSE_FLAGS_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all
INTERPOSE_FLAGS_tsan := -O1 -g -fsanitize=thread
INTERPOSE_TEST_CFLAGS = $(CFLAGS_STRICT) $(INTERPOSE_CPPFLAGS) -Iinterpose/test

$(INTERPOSE_FAKE): interpose/test/fake_driver.c $(INTERPOSE_TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_STRICT) -O1 -g -fPIC -shared -Wl,-soname,libcuda.so.1 -o $@ $<

define interpose_flavour
$(BUILD)/obj/interpose-$(1)/%.o: interpose/src/%.c $(INTERPOSE_HEADERS) $(INTERPOSE_GENERATED)
	@mkdir -p $$(@D)
	$(CC) $$(INTERPOSE_TEST_CFLAGS) $(INTERPOSE_FLAGS_$(1)) -c -o $$@ $$<

$(BUILD)/obj/interpose-$(1)/%.o: interpose/src/%.S $(INTERPOSE_GENERATED)
	@mkdir -p $$(@D)
	$(CC) -c -o $$@ $$<

$(BUILD)/test/interpose/$(1)/test_%: interpose/test/test_%.c interpose/test/daemon.c \
		$(INTERPOSE_TEST_HEADERS) $(call interpose_objects,interpose-$(1),x86_64)
	@mkdir -p $$(@D)
	$(CC) $$(INTERPOSE_TEST_CFLAGS) $(INTERPOSE_FLAGS_$(1)) -o $$@ $$(filter-out %.h,$$^) -ldl -lpthread

INTERPOSE_TEST_PROGRAMS += $(INTERPOSE_TESTS:%=$(BUILD)/test/interpose/$(1)/test_%)
endef
$(foreach flavour,plain asan tsan,$(eval $(call interpose_flavour,$(flavour))))
INTERPOSE_TEST_PROGRAMS += $(BUILD)/test/interpose/plain/test_alloc
.SECONDARY: $(foreach f,plain asan tsan,$(call interpose_objects,interpose-$(f),x86_64))

# The gate against the vectors that its twin in Go obeys, too. It links nothing of the interposer.
INTERPOSE_VECTORS := $(BUILD)/test/interpose/gate_vectors
$(INTERPOSE_VECTORS): interpose/test/gate_vectors.c $(INTERPOSE_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(INTERPOSE_TEST_CFLAGS) $(INTERPOSE_FLAGS_asan) -o $@ $<

.PHONY: interpose interpose-arm64 test-interpose
interpose: $(INTERPOSE_LIB)
interpose-arm64: $(INTERPOSE_LIB_ARM64)

test-interpose: $(INTERPOSE_TEST_PROGRAMS) $(INTERPOSE_LIB) $(INTERPOSE_FAKE) $(INTERPOSE_VECTORS)
	@$(INTERPOSE_VECTORS) tests/testdata/gate-vectors.txt
	@for program in $(INTERPOSE_TEST_PROGRAMS); do \
		HEDDLE_TEST_LIBRARY=$(INTERPOSE_LIB) HEDDLE_REAL_LIBCUDA=$(CURDIR)/$(INTERPOSE_FAKE) \
		$$program || exit 1; \
	done
