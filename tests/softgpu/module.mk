# The software GPU: libcuda.so.1, its tool, and builds of it that play other drivers.

CC ?= gcc
BUILD ?= build
CFLAGS ?= -O2 -g
CFLAGS_STRICT ?= -std=c11 -Wall -Wextra -Werror -Wshadow -Wconversion -Wvla -Wmissing-prototypes \
	-Wstrict-prototypes -fvisibility=hidden -fno-common

SOFTGPU_DIR := tests/softgpu
SOFTGPU_OBJ = $(BUILD)/softgpu/obj
SOFTGPU_MAP := $(SOFTGPU_DIR)/gen/libcuda.map
# The model, the state file and the GPU table; NVML and the tool are built from these too.
SOFTGPU_CORE := $(addprefix $(SOFTGPU_DIR)/src/,engine.c lists.c sm.c shape.c repair.c state.c \
	state_fill.c proc.c fault.c mig.c mig_rules.c mig_mode.c mig_use.c \
	mig_caps.c) $(SOFTGPU_DIR)/models/models.c
SOFTGPU_DRIVER := $(filter-out $(SOFTGPU_CORE),$(wildcard $(SOFTGPU_DIR)/src/*.c)) \
	$(SOFTGPU_DIR)/gen/stubs.c
SOFTGPU_TOOL := $(wildcard $(SOFTGPU_DIR)/tool/*.c)
SOFTGPU_HEADERS := $(wildcard $(SOFTGPU_DIR)/include/*.h $(SOFTGPU_DIR)/src/*.h \
	$(SOFTGPU_DIR)/tool/*.h)
SOFTGPU_CFLAGS = $(CFLAGS_STRICT) $(CFLAGS) -fPIC -I$(SOFTGPU_DIR)/include -I$(SOFTGPU_DIR)/src
SOFTGPU_LIBS := -lpthread -ldl -lm
# The library keeps a thread, so it stays where it is once loaded.
SOFTGPU_LINK = -shared -Wl,-soname,libcuda.so.1 -Wl,-z,defs,-z,now,-z,nodelete

C_SOURCES += $(SOFTGPU_CORE) $(filter-out %/gen/stubs.c,$(SOFTGPU_DRIVER)) $(SOFTGPU_TOOL) \
	$(wildcard $(SOFTGPU_DIR)/test/*.c)
C_HEADERS += $(SOFTGPU_HEADERS) $(wildcard $(SOFTGPU_DIR)/test/*.h)

softgpu_objects = $(patsubst $(SOFTGPU_DIR)/%.c,$(SOFTGPU_OBJ)/$(1)/%.o,$(SOFTGPU_CORE) $(SOFTGPU_DRIVER))

.PHONY: softgpu
softgpu: $(BUILD)/softgpu/libcuda.so.1 $(BUILD)/softgpu/libcuda.so $(BUILD)/softgpu/bin/softgpu \
	$(BUILD)/softgpu-plt/libcuda.so.1 $(BUILD)/softgpu-old/libcuda.so.1 \
	$(BUILD)/softgpu-new/libcuda.so.1 ## the software GPU's libcuda.so.1 and tool

# An older and a newer driver differ from the plain one in the files that know the version.
SOFTGPU_VERSIONED := init.c procaddr.c
softgpu_variant = $(filter-out \
	$(SOFTGPU_VERSIONED:%.c=$(SOFTGPU_OBJ)/plain/src/%.o),$(call softgpu_objects,plain)) \
	$(SOFTGPU_VERSIONED:%.c=$(SOFTGPU_OBJ)/$(1)/src/%.o)

define softgpu_compile
$(SOFTGPU_OBJ)/$(1)/%.o: $(SOFTGPU_DIR)/%.c $(SOFTGPU_HEADERS)
	@mkdir -p $$(@D)
	$$(CC) $$(SOFTGPU_CFLAGS) $(2) -c -o $$@ $$<
endef
$(eval $(call softgpu_compile,plain,))
$(eval $(call softgpu_compile,old,-DSG_DRIVER_VERSION=11080))
$(eval $(call softgpu_compile,new,-DSG_DRIVER_VERSION=14000 -DSG_VARIANT_NEW))

$(BUILD)/softgpu/libcuda.so.1: $(call softgpu_objects,plain) $(SOFTGPU_MAP)
	$(CC) $(LDFLAGS) $(SOFTGPU_LINK) -Wl,-Bsymbolic -Wl,--version-script=$(SOFTGPU_MAP) -o $@ \
		$(filter %.o,$^) $(SOFTGPU_LIBS)

$(BUILD)/softgpu/libcuda.so: $(BUILD)/softgpu/libcuda.so.1
	ln -sf libcuda.so.1 $@

# A driver whose own calls of exported functions go through the dynamic linker.
$(BUILD)/softgpu-plt/libcuda.so.1: $(call softgpu_objects,plain) $(SOFTGPU_MAP)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) $(SOFTGPU_LINK) -Wl,--version-script=$(SOFTGPU_MAP) -o $@ \
		$(filter %.o,$^) $(SOFTGPU_LIBS)

# A driver of 11.8: without the names that came later.
$(BUILD)/softgpu-old/libcuda.so.1: $(call softgpu_variant,old) $(SOFTGPU_MAP) $(BUILD)/softgpu/bin/softgpu
	@mkdir -p $(@D)
	$(BUILD)/softgpu/bin/softgpu names --until 11080 | awk 'BEGIN { print "{\n  global:" } \
		{ print "    " $$1 ";" } END { print "  local: *;\n};" }' > $(@D)/libcuda.map
	$(CC) $(LDFLAGS) $(SOFTGPU_LINK) -Wl,-Bsymbolic -Wl,--version-script=$(@D)/libcuda.map -o $@ \
		$(filter %.o,$^) $(SOFTGPU_LIBS)

# A driver to come: one more name, and an answer that is no export.
$(BUILD)/softgpu-new/libcuda.so.1: $(call softgpu_variant,new) $(SOFTGPU_MAP)
	@mkdir -p $(@D)
	sed 's/^  global:/  global:\n    cuSoftgpuFuture;/' $(SOFTGPU_MAP) > $(@D)/libcuda.map
	$(CC) $(LDFLAGS) $(SOFTGPU_LINK) -Wl,-Bsymbolic -Wl,--version-script=$(@D)/libcuda.map -o $@ \
		$(filter %.o,$^) $(SOFTGPU_LIBS)

$(BUILD)/softgpu/bin/softgpu: $(SOFTGPU_TOOL) $(SOFTGPU_CORE) $(SOFTGPU_DIR)/src/since.c \
		$(SOFTGPU_DIR)/gen/stubs.c $(SOFTGPU_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(SOFTGPU_CFLAGS) -o $@ $(SOFTGPU_TOOL) $(SOFTGPU_CORE) $(SOFTGPU_DIR)/src/since.c \
		$(SOFTGPU_DIR)/gen/stubs.c $(SOFTGPU_LIBS)

comma := ,

# ---- tests: against the library, and with the driver's sources inside under the sanitizers.
SOFTGPU_TESTS := $(patsubst $(SOFTGPU_DIR)/test/%.c,%,$(wildcard $(SOFTGPU_DIR)/test/test_*.c))
# Of a test that is more than one file: the others.
SOFTGPU_MORE_test_stress := $(SOFTGPU_DIR)/test/stress_work.c
$(foreach f,plain asan tsan,$(BUILD)/test/softgpu/$(f)/test_stress): $(SOFTGPU_MORE_test_stress)
# These take the cost profile as an argument. The others fork or need simulated time.
SOFTGPU_THREADED := test_capture test_threads
SOFTGPU_TEST_CFLAGS = $(CFLAGS_STRICT) $(CFLAGS) -I$(SOFTGPU_DIR)/include \
	-I$(SOFTGPU_DIR)/src -I$(SOFTGPU_DIR)/tool -I$(SOFTGPU_DIR)/test

.PHONY: test-softgpu
test-softgpu: softgpu $(SOFTGPU_TESTS:%=$(BUILD)/test/softgpu/plain/%) \
		$(SOFTGPU_TESTS:%=$(BUILD)/test/softgpu/asan/%) \
		$(SOFTGPU_THREADED:%=$(BUILD)/test/softgpu/tsan/%) ## tests of the software GPU
	@set -e; for t in $(filter $(BUILD)/test/softgpu/%,$^); do BUILD=$(BUILD) $$t; done
	@set -e; for t in $(SOFTGPU_THREADED); do $(BUILD)/test/softgpu/asan/$$t null; done
	@BUILD=$(BUILD) $(SOFTGPU_DIR)/test/exports.sh

# Everything at once, for STRESS seconds in each flavour. SEED=N repeats a run's decisions.
STRESS ?= 20
.PHONY: stress
stress: $(BUILD)/test/softgpu/plain/test_stress $(BUILD)/test/softgpu/asan/test_stress \
		$(BUILD)/test/softgpu/tsan/test_stress ## processes of the software GPU killed, stopped, leaving: nobody may hang
	@set -e; for t in $^; do echo "$$t"; $$t $(STRESS) $(SEED); done

$(BUILD)/test/softgpu/plain/%: $(SOFTGPU_DIR)/test/%.c $(SOFTGPU_HEADERS) \
		$(wildcard $(SOFTGPU_DIR)/test/*.h) $(BUILD)/softgpu/libcuda.so $(SOFTGPU_CORE)
	@mkdir -p $(@D)
	$(CC) $(SOFTGPU_TEST_CFLAGS) -o $@ $< $(SOFTGPU_MORE_$*) $(SOFTGPU_DIR)/tool/replay.c $(SOFTGPU_CORE) \
		$(SOFTGPU_DIR)/src/since.c -L$(BUILD)/softgpu -lcuda \
		-Wl,-rpath,$(abspath $(BUILD)/softgpu) $(SOFTGPU_LIBS)

# Sanitizers need the driver's sources inside the program. $(1): folder, $(2): flags.
define softgpu_sanitized
$(BUILD)/test/softgpu/obj-$(1)/%.o: $(SOFTGPU_DIR)/%.c $(SOFTGPU_HEADERS)
	@mkdir -p $$(@D)
	$$(CC) $$(SOFTGPU_CFLAGS) -O1 $(2) -fno-omit-frame-pointer -c -o $$@ $$<

SOFTGPU_OBJ_$(1) := $(patsubst $(SOFTGPU_DIR)/%.c,$(BUILD)/test/softgpu/obj-$(1)/%.o,$(SOFTGPU_CORE) $(SOFTGPU_DRIVER))
$(BUILD)/test/softgpu/$(1)/%: $(SOFTGPU_DIR)/test/%.c $$(SOFTGPU_OBJ_$(1)) \
		$(wildcard $(SOFTGPU_DIR)/test/*.h) $(SOFTGPU_DIR)/tool/replay.c
	@mkdir -p $$(@D)
	$$(CC) $$(SOFTGPU_TEST_CFLAGS) -O1 $(2) -rdynamic -o $$@ $$< $$(SOFTGPU_MORE_$$*) $(SOFTGPU_DIR)/tool/replay.c \
		$$(SOFTGPU_OBJ_$(1)) $$(SOFTGPU_LIBS)

.SECONDARY: $$(SOFTGPU_OBJ_$(1))
endef
$(eval $(call softgpu_sanitized,asan,-fsanitize=address$(comma)undefined -fno-sanitize-recover=all))
$(eval $(call softgpu_sanitized,tsan,-fsanitize=thread))

# The only parser of outside data here reads PTX. T is how long it is fuzzed.
.PHONY: fuzz-softgpu
fuzz-softgpu: ## fuzz the PTX reader for T (seconds), with clang
	@mkdir -p $(BUILD)/test/softgpu/corpus
	clang $(CFLAGS_STRICT) -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-I$(SOFTGPU_DIR)/include -I$(SOFTGPU_DIR)/src -o $(BUILD)/test/softgpu/fuzz_ptx \
		$(SOFTGPU_DIR)/test/fuzz_ptx.c $(SOFTGPU_CORE) $(SOFTGPU_DRIVER) $(SOFTGPU_LIBS)
	$(BUILD)/test/softgpu/fuzz_ptx -max_total_time=$(T:s=) -detect_leaks=0 -rss_limit_mb=8192 \
		-artifact_prefix=$(BUILD)/test/softgpu/ $(BUILD)/test/softgpu/corpus $(SOFTGPU_DIR)/kernels
