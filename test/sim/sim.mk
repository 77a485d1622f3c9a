# SPDX-License-Identifier: Apache-2.0
# The simulated CUDA, all of it under $(BUILD)/sim. Included by the Makefile; `make sim` builds it.

BUILD ?= build
SIM := $(BUILD)/sim
SIM_DIR := test/sim
# Not optimised: most of it is compiled for four libraries or more, and a simulated kernel takes as
# long as it is told to.
SIM_CFLAGS := -D_GNU_SOURCE -O0 -fPIC -fvisibility=hidden -fno-strict-aliasing \
	-I$(SIM_DIR)/include -I$(SIM_DIR)/nccl -I$(SIM_DIR)

SIM_COMMON_SRC := $(addprefix $(SIM_DIR)/,sim_log.c sim_text.c sim_failure.c)
SIM_DRIVER_SRC := $(sort $(wildcard $(SIM_DIR)/sim_driver_*.c)) $(SIM_DIR)/sim_pool.c
SIM_RUNTIME_SRC := $(sort $(wildcard $(SIM_DIR)/sim_runtime_*.c))

SIM_DRIVER_OBJ := $(patsubst $(SIM_DIR)/%.c,$(SIM)/obj/driver/%.o,\
	$(SIM_DRIVER_SRC) $(SIM_COMMON_SRC))
SIM_RUNTIME12_OBJ := $(patsubst $(SIM_DIR)/%.c,$(SIM)/obj/rt12/%.o,\
	$(SIM_RUNTIME_SRC) $(SIM_COMMON_SRC))
SIM_RUNTIME13_OBJ := $(patsubst $(SIM_DIR)/%.c,$(SIM)/obj/rt13/%.o,\
	$(SIM_RUNTIME_SRC) $(SIM_COMMON_SRC))

SIM_STATIC_OBJ := $(patsubst $(SIM_DIR)/%.c,$(SIM)/obj/static/%.o,\
	$(SIM_RUNTIME_SRC) $(SIM_COMMON_SRC))
# The tools that belong to the compiler, so that CC alone picks the machine.
SIM_OBJCOPY = $(shell $(CC) -print-prog-name=objcopy)
SIM_AR = $(shell $(CC) -print-prog-name=ar)

# CUPTI: compiled once for each of its versions.
SIM_CUPTI_SRC := $(sort $(wildcard $(SIM_DIR)/sim_cupti_*.c))
SIM_CUPTI118_OBJ := $(patsubst $(SIM_DIR)/%.c,$(SIM)/obj/cupti118/%.o,$(SIM_CUPTI_SRC))
SIM_CUPTI124_OBJ := $(patsubst $(SIM_DIR)/%.c,$(SIM)/obj/cupti124/%.o,$(SIM_CUPTI_SRC))
SIM_CUPTI130_OBJ := $(patsubst $(SIM_DIR)/%.c,$(SIM)/obj/cupti130/%.o,$(SIM_CUPTI_SRC))
SIM_CUPTI135_OBJ := $(patsubst $(SIM_DIR)/%.c,$(SIM)/obj/cupti135/%.o,$(SIM_CUPTI_SRC))
SIM_CUPTI_LIBS := $(SIM)/libcupti.so.11.8 $(SIM)/libcupti.so.12 $(SIM)/libcupti.so.13 \
	$(SIM)/13.5/libcupti.so.13

SIM_LIBS := $(SIM)/libcuda.so.1 $(SIM)/libcuda.so $(SIM)/libcudart.so.12 $(SIM)/libcudart.so.13 \
	$(SIM)/libcudart.so $(SIM)/libcudart_static.a
SIM_NVML := $(SIM)/libnvidia-ml.so.1 $(SIM)/nvml-450/libnvidia-ml.so.1
SIM_NCCL := $(SIM)/libnccl.so.2 $(SIM)/libnccl.so
SIM_NCCL_OBJ := $(patsubst $(SIM_DIR)/%.c,$(SIM)/obj/nccl/%.o,\
	$(sort $(wildcard $(SIM_DIR)/sim_nccl_*.c)))

.PHONY: sim sim-cuda
sim: sim-cuda $(SIM_CUPTI_LIBS) $(SIM_NVML) $(SIM_NCCL)
sim-cuda: $(SIM_LIBS)

$(SIM)/obj/driver/%.o: $(SIM_DIR)/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(CPPFLAGS) -std=gnu11 -Wall -Wextra $(WERROR) $(CFLAGS) $(SIM_CFLAGS) \
		-MMD -MP -c $< -o $@

$(SIM)/obj/rt12/%.o: $(SIM_DIR)/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(CPPFLAGS) -std=gnu11 -Wall -Wextra $(WERROR) $(CFLAGS) $(SIM_CFLAGS) \
		-DSIM_CUDART_MAJOR=12 -MMD -MP -c $< -o $@

$(SIM)/obj/rt13/%.o: $(SIM_DIR)/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(CPPFLAGS) -std=gnu11 -Wall -Wextra $(WERROR) $(CFLAGS) $(SIM_CFLAGS) \
		-DSIM_CUDART_MAJOR=13 -MMD -MP -c $< -o $@

cupti_cc = $(call say,CC,$@) $(CC) $(CPPFLAGS) -std=gnu11 -Wall -Wextra $(WERROR) $(CFLAGS) \
	$(SIM_CFLAGS) -DSIM_CUPTI=$(1) -MMD -MP -c $< -o $@

$(SIM)/obj/cupti118/%.o: $(SIM_DIR)/%.c
	@mkdir -p $(@D)
	$(call cupti_cc,118)

$(SIM)/obj/cupti124/%.o: $(SIM_DIR)/%.c
	@mkdir -p $(@D)
	$(call cupti_cc,124)

$(SIM)/obj/cupti130/%.o: $(SIM_DIR)/%.c
	@mkdir -p $(@D)
	$(call cupti_cc,130)

$(SIM)/obj/cupti135/%.o: $(SIM_DIR)/%.c
	@mkdir -p $(@D)
	$(call cupti_cc,135)

$(SIM)/libcupti.so.11.8: $(SIM_CUPTI118_OBJ)
$(SIM)/libcupti.so.12: $(SIM_CUPTI124_OBJ)
$(SIM)/libcupti.so.13: $(SIM_CUPTI130_OBJ)
$(SIM)/13.5/libcupti.so.13: $(SIM_CUPTI135_OBJ)
# Each has one version node, of its own name: what is linked with the real one asks for that.
$(SIM_CUPTI_LIBS):
	@mkdir -p $(@D)
	$(Q)echo '$(@F) { global: cupti*; local: *; };' > $@.map
	$(call say,LD,$@) $(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-Bsymbolic -Wl,-soname,$(@F) \
		-Wl,--version-script=$@.map -Wl,--no-undefined $^ -o $@ -pthread -ldl

# Internal calls never leave the library, as in the real one.
$(SIM)/libcuda.so.1: $(SIM_DRIVER_OBJ)
	$(call say,LD,$@) $(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-Bsymbolic \
		-Wl,-soname,$(@F) $^ -o $@ -pthread

$(SIM)/libcudart.so.12: $(SIM_RUNTIME12_OBJ) $(SIM_DIR)/sim_cudart12.map
	$(call say,LD,$@) $(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-Bsymbolic -Wl,-soname,$(@F) \
		-Wl,--version-script=$(SIM_DIR)/sim_cudart12.map $(SIM_RUNTIME12_OBJ) -o $@ -pthread -ldl

$(SIM)/libcudart.so.13: $(SIM_RUNTIME13_OBJ) $(SIM_DIR)/sim_cudart13.map
	$(call say,LD,$@) $(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-Bsymbolic -Wl,-soname,$(@F) \
		-Wl,--version-script=$(SIM_DIR)/sim_cudart13.map $(SIM_RUNTIME13_OBJ) -o $@ -pthread -ldl

# NVML: also as the driver 450 has it, without what came later.
SIM_NVML_SRC := $(SIM_DIR)/sim_nvml.c $(SIM_DIR)/sim_nvml_counters.c $(SIM_DIR)/sim_nvml_gpm.c
$(SIM)/nvml-450/libnvidia-ml.so.1: SIM_NVML_FLAGS := -DSIM_NVML_DRIVER=450
$(SIM_NVML): $(SIM_NVML_SRC) $(SIM_DIR)/sim_nvml.h
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(CPPFLAGS) -std=gnu11 -Wall -Wextra $(WERROR) $(CFLAGS) $(SIM_CFLAGS) \
		$(SIM_NVML_FLAGS) $(LDFLAGS) -shared -Wl,-Bsymbolic -Wl,-soname,$(@F) $(SIM_NVML_SRC) -o $@ \
		-pthread -ldl

# As the real one it has its runtime in itself, and is not symbolic.
$(SIM)/obj/nccl/%.o: $(SIM_DIR)/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(CPPFLAGS) -std=gnu11 -Wall -Wextra $(WERROR) $(CFLAGS) $(SIM_CFLAGS) \
		-DSIM_CUDART_MAJOR=13 -Wno-unused-function -MMD -MP -c $< -o $@

$(SIM)/libnccl.so.2: $(SIM_NCCL_OBJ) $(SIM)/libcudart_static.a
	$(call say,LD,$@) $(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) $^ -o $@ -pthread -ldl

$(SIM)/libnccl.so: | $(SIM)/libnccl.so.2
	$(Q)ln -sf libnccl.so.2 $@

$(SIM)/libcuda.so: | $(SIM)/libcuda.so.1
	$(Q)ln -sf libcuda.so.1 $@

$(SIM)/libcudart.so: | $(SIM)/libcudart.so.13
	$(Q)ln -sf libcudart.so.13 $@

$(SIM)/obj/static/%.o: $(SIM_DIR)/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(CPPFLAGS) -std=gnu11 -Wall -Wextra $(WERROR) $(CFLAGS) $(SIM_CFLAGS) \
		-DSIM_CUDART_MAJOR=13 -DSIM_STATIC -MMD -MP -c $< -o $@

# One object: the API is hidden, the rest local, so that nothing outside can interpose or collide.
$(SIM)/obj/cudart_static.o: $(SIM_STATIC_OBJ)
	$(call say,LD,$@) $(CC) $(CFLAGS) -r -nostdlib $^ -o $@.all
	$(Q)$(SIM_OBJCOPY) -w --keep-global-symbol='cuda*' --keep-global-symbol='__cuda*' $@.all $@

$(SIM)/libcudart_static.a: $(SIM)/obj/cudart_static.o
	$(Q)rm -f $@
	$(call say,AR,$@) $(SIM_AR) rcs $@ $^

# The self-test, against each of the three runtimes: `make sim-selftest` builds and runs it.
SIM_SELFTEST := $(SIM)/sim_selftest12 $(SIM)/sim_selftest13 $(SIM)/sim_selftest_static
SIM_SELFTEST_FLAGS = -std=gnu11 -Wall -Wextra $(WERROR) $(CFLAGS) -D_GNU_SOURCE \
	-I$(SIM_DIR)/include \
	$(SIM_DIR)/sim_selftest.c -o $@ $(LDFLAGS) -Wl,-rpath,'$$ORIGIN' -pthread

$(SIM_SELFTEST): $(SIM_DIR)/sim_selftest.c test/programs/kernels.h $(SIM_LIBS)

$(SIM)/sim_selftest12:
	$(call say,CCLD,$@) $(CC) -DSIM_CUDART_MAJOR=12 $(SIM_SELFTEST_FLAGS) $(SIM)/libcudart.so.12 \
		$(SIM)/libcuda.so.1

$(SIM)/sim_selftest13:
	$(call say,CCLD,$@) $(CC) $(SIM_SELFTEST_FLAGS) $(SIM)/libcudart.so.13 $(SIM)/libcuda.so.1

$(SIM)/sim_selftest_static:
	$(call say,CCLD,$@) $(CC) $(SIM_SELFTEST_FLAGS) $(SIM)/libcudart_static.a $(SIM)/libcuda.so.1 -ldl

.PHONY: sim-selftest
sim-selftest: $(SIM_SELFTEST)
	$(Q)for test in $^; do $$test || exit 1; done

-include $(SIM_DRIVER_OBJ:.o=.d) $(SIM_NCCL_OBJ:.o=.d) \
	$(SIM_RUNTIME12_OBJ:.o=.d) $(SIM_RUNTIME13_OBJ:.o=.d) \
	$(SIM_STATIC_OBJ:.o=.d) $(SIM_CUPTI118_OBJ:.o=.d) $(SIM_CUPTI124_OBJ:.o=.d) \
	$(SIM_CUPTI130_OBJ:.o=.d) $(SIM_CUPTI135_OBJ:.o=.d)
