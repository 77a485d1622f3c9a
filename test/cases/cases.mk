# SPDX-License-Identifier: Apache-2.0
# `make check-aarch64`: the comparison with the truth log, cross-built and run by qemu-user. To
# build takes longer than the tests: what is tested is optimised as ever, the rest is not.

AARCH64 := aarch64-linux-gnu
AARCH64_TESTS := linked_runtime or arguments or nested or static_runtime or driver or dlsym \
	or plugins or siglongjmp or coroutines or stacks_chain or values or crossing

check-aarch64: $(BUILD)/gpuprof-collector
	$(Q)$(MAKE) --no-print-directory CROSS=$(AARCH64)- BUILD=$(BUILD)/$(AARCH64) CFLAGS=-O2 lib
	$(Q)$(MAKE) --no-print-directory CROSS=$(AARCH64)- BUILD=$(BUILD)/$(AARCH64) CFLAGS=-O0 sim-cuda
	$(Q)BUILD=$(BUILD)/$(AARCH64) GPUPROF_TEST_CROSS=$(AARCH64) /usr/bin/python3 -m pytest -n 2 \
		test/cases/test_truth.py test/cases/test_leave.py \
		test/cases/test_native_stacks.py test/cases/test_torch_ops.py \
		-k '($(AARCH64_TESTS)) and not test_report and not test_trace'
