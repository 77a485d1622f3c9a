# SPDX-License-Identifier: Apache-2.0
# `make check-aarch64`: the comparison with the truth log, cross-built and run by qemu-user. What is
# tested is optimised as ever; ./scripts/check, where to build that would take longer than the
# tests, asks for AARCH64_OPT=-O0. What is not initialised is told by the build of this machine.

AARCH64 := aarch64-linux-gnu
AARCH64_OPT ?= -O2
AARCH64_BUILD := $(BUILD)/$(AARCH64)$(AARCH64_OPT)
AARCH64_TESTS := linked_runtime or arguments or nested or static_runtime or driver or dlsym \
	or plugins or siglongjmp or coroutines or stacks_chain or values or crossing

check-aarch64: $(BUILD)/gpuprof-collector
	$(Q)$(MAKE) --no-print-directory CROSS=$(AARCH64)- BUILD=$(AARCH64_BUILD) \
		CFLAGS='$(AARCH64_OPT) -Wno-maybe-uninitialized' lib sim-cuda
	$(Q)BUILD=$(AARCH64_BUILD) GPUPROF_TEST_CROSS=$(AARCH64) /usr/bin/python3 -m pytest -n 2 \
		test/cases/test_truth.py test/cases/test_leave.py \
		test/cases/test_native_stacks.py test/cases/test_torch_ops.py \
		-k '($(AARCH64_TESTS)) and not test_report and not test_trace'

# The collector that keeps the report of any recording, however small (test_kept_report.py).
KEEPER := $(BUILD)/gpuprof-collector-keeps
KEPT_KEY := collector/report/shared_report.c
$(BUILD)/obj/keeper/$(KEPT_KEY).o: $(KEPT_KEY)
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(CPPFLAGS) $(STD) $(WARN) $(CFLAGS) $(SAN) $(ASSERT) \
		-DKEPT_RECORDS=1 -Icollector -Iformats -MMD -MP -c $< -o $@

$(KEEPER): $(BUILD)/obj/keeper/$(KEPT_KEY).o $(BUILD)/obj/collector/cli/main.c.o $(COLLECTOR_A)
	$(call say,LD,$@) $(CC) $(CFLAGS) $(LDFLAGS) $(PLAIN) $(SAN) $^ $(COLLECTOR_LIBS) -o $@

programs: $(KEEPER)

-include $(BUILD)/obj/keeper/$(KEPT_KEY).d
