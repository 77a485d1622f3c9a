# SPDX-License-Identifier: Apache-2.0
# `make bench`: figures, one a line, and the same in $(BUILD)/bench.json. Included by the Makefile.

BENCH := $(BUILD)/bench
BENCH_DIR := test/bench
BENCH_CFLAGS := $(STD) $(WARN) $(CFLAGS) -DNDEBUG -I$(BENCH_DIR) -Iformats -Iinject \
	-I$(dir $(PUBLIC_H))
BENCH_MIX := $(BENCH_DIR)/training-step.mix
BENCH_PROGRAMS := $(addprefix $(BENCH)/,call_cost call_cost_pg stall_cost encode_mix sort_cost \
	replay_mix gpu_cost tensor_cost peak)

# Only where LTTng-UST is installed; bench.py says so where it is not.
ifneq ($(wildcard /usr/include/lttng/tracepoint.h /usr/include/*/lttng/tracepoint.h),)
BENCH_PROGRAMS += $(BENCH)/lttng_cost
endif

# Only where there is a C++ compiler; bench.py says so where there is none.
ifneq ($(shell command -v $(CXX) 2>/dev/null),)
BENCH_PROGRAMS += $(BENCH)/op_cost $(BENCH)/torch_ops
endif

# Only where the headers of Python are; bench.py says so where they are not.
PYTHON_CFLAGS := $(shell $(PKG_CONFIG) --cflags python3 2>/dev/null)
ifneq ($(PYTHON_CFLAGS),)
BENCH_PROGRAMS += $(BENCH)/python_reader.abi3.so
endif

.PHONY: bench-programs
bench-programs: $(BENCH)/libcudart.so.12 $(BENCH_PROGRAMS)

bench: lib collector-bin bench-programs $(BUILD)/make_gpu $(BUILD)/make_stacks
	$(Q)/usr/bin/python3 $(BENCH_DIR)/bench.py $(BUILD)

$(BENCH)/libcuda.so.1: $(BENCH_DIR)/stub_cuda.c $(BENCH_DIR)/stub_cudart.h
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(BENCH_CFLAGS) -fPIC -shared -Wl,-soname,$(@F) $< -o $@

$(BENCH)/libcudart.so.12: $(BENCH_DIR)/stub_cudart.c $(BENCH_DIR)/stub_cudart.h \
		$(BENCH)/libcuda.so.1
	$(call say,LD,$@) $(CC) $(filter-out -Wmissing-prototypes,$(BENCH_CFLAGS)) -fPIC -shared \
		-Wl,-soname,$(@F) $< $(BENCH)/libcuda.so.1 -Wl,-rpath,'$$ORIGIN' -o $@

$(BENCH)/python_reader.abi3.so: test/cases/src/python_reader.c $(INJECT_A)
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(filter-out -Wmissing-prototypes,$(BENCH_CFLAGS)) $(PYTHON_CFLAGS) -fPIC \
		-fvisibility=hidden -shared -Wl,--wrap=python_code_place $(with_inject) -o $@ -pthread

$(BENCH)/libcublas.so.12 $(BENCH)/libcublasLt.so.12: $(BENCH_DIR)/stub_cublas.c \
		$(BENCH_DIR)/stub_cublas.h
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(BENCH_CFLAGS) $(if $(findstring Lt,$@),-DLT) -fPIC -shared \
		-Wl,-soname,$(@F) $< -o $@

BENCH_LINK = $(BENCH)/libcudart.so.12 -Wl,-rpath,'$$ORIGIN' -pthread
BENCH_BLAS = $(BENCH)/libcublas.so.12 $(BENCH)/libcublasLt.so.12

$(BENCH)/call_cost: $(BENCH_DIR)/call_cost.c $(BENCH_DIR)/stub_cudart.h $(PUBLIC_H) \
		$(BENCH)/libcudart.so.12 $(BENCH_DIR)/stub_cublas.h $(BENCH)/libcublas.so.12 \
		$(BENCH)/libcublasLt.so.12
	$(call say,CC,$@) $(CC) $(BENCH_CFLAGS) $< $(BENCH_BLAS) $(BENCH_LINK) -o $@

$(BENCH)/stall_cost: $(BENCH_DIR)/stall_cost.c $(BENCH_DIR)/stub_cudart.h $(PUBLIC_H) \
		$(BENCH)/libcudart.so.12
	$(call say,CC,$@) $(CC) $(BENCH_CFLAGS) $< $(BENCH_LINK) -o $@

# For uftrace: the same program, compiled as uftrace wants it.
$(BENCH)/call_cost_pg: $(BENCH_DIR)/call_cost.c $(BENCH_DIR)/stub_cudart.h $(PUBLIC_H) \
		$(BENCH)/libcudart.so.12 $(BENCH_DIR)/stub_cublas.h $(BENCH)/libcublas.so.12 \
		$(BENCH)/libcublasLt.so.12
	$(call say,CC,$@) $(CC) $(BENCH_CFLAGS) -pg $< $(BENCH_BLAS) $(BENCH_LINK) -o $@

$(BENCH)/encode_mix: $(BENCH_DIR)/encode_mix.c $(BENCH_DIR)/mix.c $(BENCH_DIR)/mix.h \
		$(BUILD)/pic/libformats.a
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(BENCH_CFLAGS) $(filter %.c %.a,$^) $(ZSTD_LIBS) -lm -o $@

$(BENCH)/peak: test/cases/src/peak.c
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(BENCH_CFLAGS) $< -o $@

$(BENCH)/sort_cost: $(BENCH_DIR)/sort_cost.c $(BUILD)/pic/libformats.a
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(BENCH_CFLAGS) $(filter %.c %.a,$^) $(ZSTD_LIBS) -o $@

$(BENCH)/replay_mix: $(BENCH_DIR)/replay_mix.c $(BENCH_DIR)/mix.c $(BENCH_DIR)/mix.h \
		$(BENCH_DIR)/stub_cudart.h $(BENCH)/libcudart.so.12
	$(call say,CC,$@) $(CC) $(BENCH_CFLAGS) $(filter %.c,$^) $(BENCH_LINK) -lm -o $@

# Without what meets CUDA or hooks the process: the double comes first, and nothing asks for those.
$(BENCH)/gpu_cost: $(BENCH_DIR)/gpu_cost.c test/cases/src/stress_finish.c $(INJECT_A)
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(BENCH_CFLAGS) $(with_inject) $(ZSTD_LIBS) -pthread -ldl -o $@

$(BENCH)/lttng_cost: $(BENCH_DIR)/lttng_cost.c $(BENCH_DIR)/lttng_events.h $(BENCH)/libcudart.so.12
	$(call say,CC,$@) $(CC) $(STD) $(CFLAGS) -I$(BENCH_DIR) $< $(BENCH_LINK) -llttng-ust -ldl -o $@

$(BENCH)/libc10.so: test/cases/src/c10.c test/cases/src/c10.h
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(STD) $(WARN) $(CFLAGS) -fPIC -shared -Wl,-soname,$(@F) $< -o $@

$(BENCH)/tensor_cost: $(BENCH_DIR)/tensor_cost.c test/cases/src/c10.h $(BENCH)/libc10.so \
		$(BENCH)/libcudart.so.12
	$(call say,CC,$@) $(CC) $(BENCH_CFLAGS) -Itest/cases/src $< $(BENCH)/libc10.so $(BENCH_LINK) -o $@

$(BENCH)/libtorch_cpu.so: $(SIM_DIR)/sim_torch.cpp $(SIM_DIR)/sim_torch.h
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CXX) -std=c++20 -D_GNU_SOURCE -Wall -Wextra $(CFLAGS) -fPIC -shared \
		-fvisibility=hidden -Wl,-soname,$(@F) $< -o $@

$(BENCH)/op_cost: $(BENCH_DIR)/op_cost.c $(SIM_DIR)/sim_torch.h $(BENCH)/libtorch_cpu.so \
		$(BENCH)/libcudart.so.12
	$(call say,CC,$@) $(CC) $(BENCH_CFLAGS) -I$(SIM_DIR) $< $(BENCH)/libtorch_cpu.so $(BENCH_LINK) \
		-o $@

$(BENCH)/torch_ops: test/cases/src/torch_ops.c $(SIM_DIR)/sim_torch.h $(BENCH)/libtorch_cpu.so \
		$(BENCH)/libcudart.so.12
	$(call say,CC,$@) $(CC) $(BENCH_CFLAGS) -I$(SIM_DIR) $< $(BENCH)/libtorch_cpu.so $(BENCH_LINK) \
		-o $@
