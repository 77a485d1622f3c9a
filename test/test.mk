# SPDX-License-Identifier: Apache-2.0
# What the tests need besides the simulated CUDA: the programs that they record, and fragments of
# their own folders. Included by the Makefile.
#
# test/programs/NAME.c becomes $(BUILD)/programs/NAME. PROGRAM_CFLAGS_NAME and PROGRAM_LIBS_NAME,
# where a fragment sets them, take the place of the standard ones.

PROGRAM_SRC := $(sort $(wildcard test/programs/*.c))
PROGRAM_BIN := $(PROGRAM_SRC:test/programs/%.c=$(BUILD)/programs/%)
PROGRAM_LIBS := -lcudart -lcuda
PROGRAM_CFLAGS_demo := -I$(dir $(PUBLIC_H))

# Found beside the program (installed) or in the build folder, without LD_LIBRARY_PATH.
PROGRAM_LDFLAGS := -L$(SIM) -Wl,--as-needed -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../sim'

$(PROGRAM_BIN): $(BUILD)/programs/%: test/programs/%.c $(SIM_LIBS)
	@mkdir -p $(@D)
	$(call say,CCLD,$@) $(CC) $(CPPFLAGS) -std=gnu11 -D_GNU_SOURCE $(WARN) $(CFLAGS) $(SAN) \
		-Itest/sim/include \
		$(PROGRAM_CFLAGS_$*) -MMD -MP -MF $@.d -MT $@ $< -o $@ $(LDFLAGS) $(PROGRAM_LDFLAGS) \
		$(or $(PROGRAM_LIBS_$*),$(PROGRAM_LIBS)) -pthread

programs: sim $(PROGRAM_BIN)

DEMO_FILES := $(BUILD)/programs/demo $(SIM)/libcuda.so.1 $(SIM)/libcudart.so.13 \
	$(SIM)/libcupti.so.13
demo-parts: $(DEMO_FILES)

-include $(PROGRAM_BIN:=.d)
-include $(filter-out test/sim/sim.mk,$(sort $(wildcard test/*/*.mk)))
