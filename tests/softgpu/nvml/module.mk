# The software GPU's libnvidia-ml.so.1. Extends the targets of tests/softgpu/module.mk, and takes from it what both
# libraries are built from: the state file, the device model, the GPU models.

NVML_DIR = tests/softgpu/nvml
NVML_OUT = $(BUILD)/softgpu
NVML_SOURCES = $(addprefix $(NVML_DIR)/,session.c handles.c call.c view.c system.c errors.c identity.c memory.c \
	processes.c utilization.c health.c mode.c fields.c mig_mode.c mig_profile.c gpu_instance.c compute_instance.c \
	mig_device.c events.c)
NVML_HEADERS = $(wildcard $(NVML_DIR)/*.h)
NVML_DEPENDS = $(NVML_HEADERS) $(NVML_DIR)/names.def $(wildcard tests/softgpu/include/*.h tests/softgpu/src/*.h)
NVML_FLAGS = $(CFLAGS) $(CFLAGS_STRICT) -Itests/softgpu/include -Itests/softgpu/src -I$(NVML_DIR)

C_SOURCES += $(NVML_SOURCES) $(NVML_DIR)/stubs.c $(wildcard $(NVML_DIR)/test/*.c)
C_HEADERS += $(NVML_HEADERS)

$(NVML_OUT)/libnvidia-ml.so.1: $(NVML_SOURCES) $(NVML_DIR)/stubs.c $(SOFTGPU_CORE) $(NVML_DEPENDS)
	@mkdir -p $(@D)
	$(CC) $(NVML_FLAGS) -fPIC -shared -Wl,-soname,libnvidia-ml.so.1 -Wl,-z,defs,-z,now -o $@ \
		$(filter %.c,$^) -lpthread -lm

$(NVML_OUT)/libnvidia-ml.so: $(NVML_OUT)/libnvidia-ml.so.1
	ln -sf libnvidia-ml.so.1 $@

softgpu: $(NVML_OUT)/libnvidia-ml.so.1 $(NVML_OUT)/libnvidia-ml.so $(BUILD)/softgpu-premig/libnvidia-ml.so.1

# One of before MIG: who calls a name that it lacks ends with "undefined symbol".
$(BUILD)/softgpu-premig/libnvidia-ml.so.1: $(NVML_SOURCES) $(NVML_DIR)/stubs.c $(SOFTGPU_CORE) $(NVML_DEPENDS)
	@mkdir -p $(@D)
	sed -n '/Mig\|Instance/d; s/^NVML_NAME(\(.*\))$$/\1;/p' $(NVML_DIR)/names.def | \
		awk 'BEGIN { print "{ global:" } { print } END { print "local: *; };" }' > $(@D)/libnvidia-ml.map
	$(CC) $(NVML_FLAGS) -fPIC -shared -Wl,-soname,libnvidia-ml.so.1 -Wl,-z,defs,-z,now \
		-Wl,--version-script=$(@D)/libnvidia-ml.map -o $@ $(filter %.c,$^) -lpthread -lm

# The tests link the sources, so that the sanitizers see all of it; the plain build also checks the names
# that the library exports.
NVML_TESTS = $(addprefix $(BUILD)/test/nvml-test,-plain -asan -tsan)
NVML_TEST_SOURCES = $(wildcard $(NVML_DIR)/test/*.c) $(NVML_SOURCES) $(NVML_DIR)/stubs.c $(SOFTGPU_CORE)

$(BUILD)/test/nvml-test-asan: NVML_SANITIZE = -fsanitize=address,undefined -fno-sanitize-recover=all
$(BUILD)/test/nvml-test-tsan: NVML_SANITIZE = -fsanitize=thread

$(NVML_TESTS): $(NVML_TEST_SOURCES) $(NVML_DEPENDS)
	@mkdir -p $(@D)
	$(CC) $(NVML_FLAGS) $(NVML_SANITIZE) -o $@ $(filter %.c,$^) -lpthread -lm

.PHONY: test-nvml
test-nvml: $(NVML_TESTS) $(NVML_OUT)/libnvidia-ml.so.1
	@for t in $(NVML_TESTS); do echo "$$t"; $$t || exit 1; done
	@sh $(NVML_DIR)/test/exports.sh $(NVML_OUT)/libnvidia-ml.so.1 $(NVML_DIR)/names.def

test-softgpu: test-nvml
