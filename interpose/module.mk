# The interposer: libcuda.so.1 for x86-64, and cross-built for arm64. Included by the top Makefile.
#   interpose         build/lib/heddle/libcuda.so.1
#   interpose-arm64   build/lib/heddle-aarch64/libcuda.so.1
#   test-interpose    unit tests in three builds, and the snippets

CC ?= gcc
BUILD ?= build
CFLAGS_STRICT ?= -std=c11 -Wall -Wextra -Werror -Wshadow -Wconversion -Wvla -Wmissing-prototypes \
	-Wstrict-prototypes -fvisibility=hidden -fno-common
CC_ARM64 ?= aarch64-linux-gnu-gcc
QEMU_ARM64 ?= qemu-aarch64 -L /usr/aarch64-linux-gnu
HEDDLE_VERSION ?= 0.1.0

INTERPOSE_SOURCES := $(wildcard interpose/src/*.c)
INTERPOSE_HEADERS := $(wildcard interpose/src/*.h interpose/include/heddle/*.h)
INTERPOSE_GENERATED := interpose/gen/symbols.inc interpose/gen/libcuda.map
INTERPOSE_CPPFLAGS := -D_GNU_SOURCE -DHEDDLE_BUILD='"$(HEDDLE_VERSION)"' -Iinterpose/include \
	-Iinterpose/src
# A shared object that is loaded late may still use the loader's spare thread-local space.
INTERPOSE_TLS ?= -ftls-model=initial-exec
# lto: the slow path of a launch is many small functions in many files.
INTERPOSE_CFLAGS := $(CFLAGS_STRICT) -O2 -g -fPIC -fno-plt -fno-stack-protector -flto $(INTERPOSE_TLS)
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

$(BUILD)/obj/interpose-aarch64/%.o: interpose/src/%.c $(INTERPOSE_HEADERS) $(INTERPOSE_GENERATED)
	@mkdir -p $(@D)
	$(CC_ARM64) $(INTERPOSE_CFLAGS) $(INTERPOSE_CPPFLAGS) -c -o $@ $<

$(BUILD)/obj/interpose-aarch64/%.o: interpose/src/%.S $(INTERPOSE_GENERATED)
	@mkdir -p $(@D)
	$(CC_ARM64) -c -o $@ $<

$(INTERPOSE_LIB): $(call interpose_objects,interpose,x86_64)
	@mkdir -p $(@D)
	$(CC) -O2 -flto $(INTERPOSE_LDFLAGS) -o $@.new $^ -ldl -lpthread
	mv $@.new $@

$(INTERPOSE_LIB_ARM64): $(call interpose_objects,interpose-aarch64,aarch64)
	@mkdir -p $(@D)
	$(CC_ARM64) -O2 -flto $(INTERPOSE_LDFLAGS) -o $@.new $^ -ldl -lpthread
	mv $@.new $@

# ---- tests ----

INTERPOSE_TESTS := names text ledger log message stream profile token attach measure count yield trace
INTERPOSE_TEST_HEADERS := $(wildcard interpose/test/*.h)
INTERPOSE_FAKE := $(BUILD)/test/interpose/fake/libcuda.so.1
C_SOURCES += $(wildcard interpose/test/*.c) $(wildcard docs/examples/*.c)
C_HEADERS += $(INTERPOSE_TEST_HEADERS)

# Each flavour compiles everything for itself: TSan cannot be loaded with a library, so the logic is
# linked into the tests. No library shares a flavour's folder: the objects differ, in -fPIC for one.
INTERPOSE_FLAGS_plain := -O1 -g
INTERPOSE_FLAGS_arm64 := -O1 -g
INTERPOSE_FLAGS_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all
INTERPOSE_FLAGS_tsan := -O1 -g -fsanitize=thread
INTERPOSE_TEST_CFLAGS = $(CFLAGS_STRICT) $(INTERPOSE_CPPFLAGS) -Iinterpose/test

$(INTERPOSE_FAKE): interpose/test/fake_driver.c $(INTERPOSE_TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_STRICT) -O1 -g -fPIC -shared -Wl,-soname,libcuda.so.1 -o $@ $<

# $(1) flavour, $(2) compiler, $(3) machine
define interpose_flavour
$(BUILD)/obj/interpose-$(1)/%.o: interpose/src/%.c $(INTERPOSE_HEADERS) $(INTERPOSE_GENERATED)
	@mkdir -p $$(@D)
	$(2) $$(INTERPOSE_TEST_CFLAGS) $(INTERPOSE_FLAGS_$(1)) -c -o $$@ $$<

$(BUILD)/obj/interpose-$(1)/%.o: interpose/src/%.S $(INTERPOSE_GENERATED)
	@mkdir -p $$(@D)
	$(2) -c -o $$@ $$<

$(BUILD)/test/interpose/$(1)/test_%: interpose/test/test_%.c interpose/test/daemon.c \
		$(INTERPOSE_TEST_HEADERS) $(call interpose_objects,interpose-$(1),$(3))
	@mkdir -p $$(@D)
	$(2) $$(INTERPOSE_TEST_CFLAGS) $(INTERPOSE_FLAGS_$(1)) -o $$@ $$(filter-out %.h,$$^) -ldl -lpthread

.SECONDARY: $(call interpose_objects,interpose-$(1),$(3))
endef
$(foreach flavour,plain asan tsan,$(eval $(call interpose_flavour,$(flavour),$(CC),x86_64)))
$(eval $(call interpose_flavour,arm64,$(CC_ARM64),aarch64))

INTERPOSE_PROGRAMS = $(foreach f,plain asan tsan,$(INTERPOSE_TESTS:%=$(BUILD)/test/interpose/$(f)/test_%)) \
	$(BUILD)/test/interpose/plain/test_alloc
INTERPOSE_ON_SOFTGPU := $(BUILD)/test/interpose/plain/test_softgpu
INTERPOSE_PROGRAMS_ARM64 = $(INTERPOSE_TESTS:%=$(BUILD)/test/interpose/arm64/test_%)

$(BUILD)/test/interpose/fake-arm64/libcuda.so.1: interpose/test/fake_driver.c $(INTERPOSE_TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC_ARM64) $(CFLAGS_STRICT) -O1 -g -fPIC -shared -Wl,-soname,libcuda.so.1 -o $@ $<

# ---- snippets: small programs that open the driver in every way; the integration tests run them ----

INTERPOSE_SNIPPETS := $(BUILD)/test/interpose/snippets
INTERPOSE_SNIPPET_NAMES := open runtime threads names asked create missing launches cooperative linked linked-rpath \
	constructor
C_SOURCES += $(wildcard interpose/test/snippets/*.c)
C_HEADERS += $(wildcard interpose/test/snippets/*.h)

$(INTERPOSE_SNIPPETS)/%: interpose/test/snippets/%.c interpose/test/snippets/probe.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_STRICT) -D_GNU_SOURCE -O1 -g -o $@ $< -ldl -lpthread

$(INTERPOSE_SNIPPETS)/libthird.so: interpose/test/snippets/third.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_STRICT) -D_GNU_SOURCE -O1 -g -fPIC -shared -o $@ $< -ldl

$(INTERPOSE_SNIPPETS)/linked $(INTERPOSE_SNIPPETS)/linked-rpath $(INTERPOSE_SNIPPETS)/constructor: \
		interpose/test/snippets/linked.c interpose/test/snippets/probe.h $(INTERPOSE_FAKE)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_STRICT) -D_GNU_SOURCE -O1 -g $(INTERPOSE_LINKED_$(@F)) -o $@ $< $(INTERPOSE_FAKE) -ldl

# The old tag, which comes before LD_LIBRARY_PATH; the folder is the software GPU's.
INTERPOSE_LINKED_linked-rpath := -Wl,--disable-new-dtags,-rpath,$(abspath $(BUILD)/softgpu)
INTERPOSE_LINKED_constructor := -DCONSTRUCTOR

# With musl: the interposer, the fake driver and a program, all without glibc. musl cannot load a
# library with initial-exec thread-local data late, so there the fast path stays off.
INTERPOSE_MUSL := $(BUILD)/test/interpose/musl
CC_MUSL ?= musl-gcc

$(INTERPOSE_MUSL)/heddle/libcuda.so.1: $(INTERPOSE_SOURCES) $(INTERPOSE_HEADERS) $(INTERPOSE_GENERATED)
	@mkdir -p $(@D)
	$(CC_MUSL) -std=c11 -Wall -Wextra -Werror -O2 -fPIC -fvisibility=hidden $(INTERPOSE_CPPFLAGS) \
		-DHEDDLE_NO_FAST_PATH $(INTERPOSE_LDFLAGS) -o $@ $(INTERPOSE_SOURCES) \
		interpose/src/trampoline_x86_64.S

$(INTERPOSE_MUSL)/fake/libcuda.so.1: interpose/test/fake_driver.c $(INTERPOSE_TEST_HEADERS)
	@mkdir -p $(@D)
	$(CC_MUSL) $(CFLAGS_STRICT) -O1 -fPIC -shared -Wl,-soname,libcuda.so.1 -o $@ $<

$(INTERPOSE_MUSL)/%: interpose/test/snippets/%.c interpose/test/snippets/probe.h
	@mkdir -p $(@D)
	$(CC_MUSL) $(CFLAGS_STRICT) -D_GNU_SOURCE -O1 -o $@ $<

.PHONY: interpose-snippets
interpose-snippets: $(INTERPOSE_SNIPPET_NAMES:%=$(INTERPOSE_SNIPPETS)/%) $(INTERPOSE_SNIPPETS)/libthird.so \
	$(INTERPOSE_MUSL)/heddle/libcuda.so.1 $(INTERPOSE_MUSL)/fake/libcuda.so.1 $(INTERPOSE_MUSL)/open

# The same for arm64, with a software GPU cross-built by its own rules.
INTERPOSE_SNIPPETS_ARM64 := $(BUILD)/test/interpose/snippets-arm64
INTERPOSE_SOFTGPU_ARM64 := $(BUILD)/arm64/softgpu/libcuda.so.1

$(INTERPOSE_SNIPPETS_ARM64)/%: interpose/test/snippets/%.c interpose/test/snippets/probe.h
	@mkdir -p $(@D)
	$(CC_ARM64) $(CFLAGS_STRICT) -D_GNU_SOURCE -O1 -g -o $@ $< -ldl -lpthread

$(INTERPOSE_SOFTGPU_ARM64): $(wildcard tests/softgpu/src/* tests/softgpu/include/* tests/softgpu/gen/*)
	$(MAKE) BUILD=$(BUILD)/arm64 CC=$(CC_ARM64) $@

.PHONY: interpose-snippets-arm64
interpose-snippets-arm64: $(INTERPOSE_LIB_ARM64) $(INTERPOSE_SOFTGPU_ARM64) \
	$(addprefix $(INTERPOSE_SNIPPETS_ARM64)/,names asked threads launches)

# The integration tests need all.
test-client: interpose-snippets interpose-snippets-arm64

.PHONY: interpose interpose-arm64 test-interpose
interpose: $(INTERPOSE_LIB) ## the interposer, libcuda.so.1
interpose-arm64: $(INTERPOSE_LIB_ARM64) ## the interposer for arm64

test-interpose: $(INTERPOSE_PROGRAMS) $(INTERPOSE_PROGRAMS_ARM64) $(INTERPOSE_LIB) $(INTERPOSE_LIB_ARM64) \
		$(INTERPOSE_ON_SOFTGPU) $(BUILD)/softgpu/libcuda.so.1 $(INTERPOSE_FAKE) $(BUILD)/test/interpose/fake-arm64/libcuda.so.1 ## the interposer's unit tests
	@for program in $(INTERPOSE_PROGRAMS); do \
		HEDDLE_TEST_LIBRARY=$(INTERPOSE_LIB) HEDDLE_REAL_LIBCUDA=$(abspath $(INTERPOSE_FAKE)) \
		$$program || exit 1; \
	done
	@HEDDLE_REAL_LIBCUDA=$(abspath $(BUILD)/softgpu/libcuda.so.1) $(INTERPOSE_ON_SOFTGPU)
	@for program in $(INTERPOSE_PROGRAMS_ARM64); do \
		HEDDLE_TEST_LIBRARY=$(INTERPOSE_LIB_ARM64) \
		HEDDLE_REAL_LIBCUDA=$(abspath $(BUILD)/test/interpose/fake-arm64/libcuda.so.1) \
		$(QEMU_ARM64) $$program || exit 1; \
	done

# What a client reads from the attach socket, seeded with one message of each type. T is how long.
.PHONY: fuzz-interpose
fuzz-interpose: ## fuzz the reader of heddled's messages for T (seconds), with clang
	@mkdir -p $(BUILD)/test/interpose/corpus
	clang $(INTERPOSE_TEST_CFLAGS) -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-o $(BUILD)/test/interpose/fuzz_message interpose/test/fuzz_message.c interpose/src/message.c
	$(BUILD)/test/interpose/fuzz_message -max_total_time=$(T:s=) -max_len=4096 \
		-artifact_prefix=$(BUILD)/test/interpose/ $(BUILD)/test/interpose/corpus tests/testdata/abi-v1
