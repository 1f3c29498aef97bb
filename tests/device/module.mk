# What tests/device/run needs beside the product: the launch-cost probe.

C_SOURCES += tests/device/launch_cost.c

.PHONY: device-probe
device-probe: $(BUILD)/bin/heddle-launch-cost ## the probe that tests/device/run measures launches with

$(BUILD)/bin/heddle-launch-cost: tests/device/launch_cost.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS_STRICT) $(CFLAGS) $(LDFLAGS) -o $@ $< -ldl
