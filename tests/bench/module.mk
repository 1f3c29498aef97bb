# The benches: a CUDA client in C that is timed, and a Go program that sets the scene and judges.

BENCH_DIR := tests/bench
BENCH_SOURCES := $(wildcard $(BENCH_DIR)/client/*.c)
BENCH_HEADERS := $(wildcard $(BENCH_DIR)/client/*.h)
BENCH_CLIENT := $(BUILD)/bench/bin/bench-client
# The player's way to open the driver is a plain client's; there is no need for a second one.
BENCH_BORROWED := tests/play/src/driver.c tests/play/src/error.c
BENCH_CFLAGS = $(CFLAGS_STRICT) -D_GNU_SOURCE -O2 -g

C_SOURCES += $(BENCH_SOURCES)
C_HEADERS += $(BENCH_HEADERS)

$(BENCH_CLIENT): $(BENCH_SOURCES) $(BENCH_HEADERS) $(BENCH_BORROWED) tests/play/src/driver.h
	@mkdir -p $(@D)
	$(CC) $(BENCH_CFLAGS) -o $@ $(BENCH_SOURCES) $(BENCH_BORROWED) -ldl -lpthread

.PHONY: bench-client bench-launch bench-gate bench-attach bench-sched bench-fair bench-colocate
bench-client: $(BENCH_CLIENT)

bench-launch: build bench-client ## ns per launch: bare, through the interposer, yielded to, without a daemon
	go run ./$(BENCH_DIR) launch --build $(BUILD)

bench-gate: build bench-client ## from the holder's idling to the held one's running
	go run ./$(BENCH_DIR) gate --build $(BUILD)

bench-attach: build bench-client ## time to become a client, one and 500 at once
	go run ./$(BENCH_DIR) attach --build $(BUILD)

bench-sched: ## policies against each other in the simulator, about 5 minutes
	go run ./$(BENCH_DIR)/sched --build $(BUILD)

bench-fair: build ## training jobs that share by weight in real processes, about 8 minutes
	go run ./$(BENCH_DIR) fair --build $(BUILD)

bench-colocate: build ## services beside training jobs in real processes, and what the simulator says, about 20 minutes
	go run ./$(BENCH_DIR) colocate --build $(BUILD)
