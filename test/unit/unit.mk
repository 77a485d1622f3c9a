# SPDX-License-Identifier: Apache-2.0
# Unit tests of formats/, collector/ and parts of inject/ (cmocka, TAP): `make unit` builds and runs
# them all.

# A test is linked with the objects of all parts, of which the linker takes what it needs; doubles
# of what these need are in the test's own file, or in those beside the tests and makers.
UNIT_SRC := $(sort $(wildcard test/unit/test_*.c))
UNIT_MAKER_SRC := $(sort $(wildcard test/unit/make_*.c))
UNIT_HELP_SRC := $(filter-out $(UNIT_SRC) $(UNIT_MAKER_SRC),$(sort $(wildcard test/unit/*.c)))
UNIT_BIN := $(UNIT_SRC:test/unit/%.c=$(BUILD)/unit/%)
UNIT_OBJ := $(patsubst %,$(BUILD)/obj/%.o,$(UNIT_SRC) $(UNIT_MAKER_SRC) $(UNIT_HELP_SRC))
UNIT_A := $(BUILD)/libunit.a $(BUILD)/pic/libinject.a $(COLLECTOR_A)
UNIT_LIBS := -lcmocka $(COLLECTOR_LIBS)

$(BUILD)/obj/test/unit/%.c.o: test/unit/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(STD) $(WARN) $(CFLAGS) $(SAN) -Itest/unit -Icollector -Iinject \
		-Iformats -MMD -MP -c $< -o $@

$(BUILD)/libunit.a: $(UNIT_HELP_SRC:%=$(BUILD)/obj/%.o)

$(UNIT_BIN): $(BUILD)/unit/%: $(BUILD)/obj/test/unit/%.c.o $(UNIT_A)
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(CFLAGS) $(PLAIN) $(SAN) $(with_inject) $(UNIT_LIBS) -o $@

# Makers of stream files and archives, for tests and for measuring.
UNIT_MAKERS := $(UNIT_MAKER_SRC:test/unit/%.c=$(BUILD)/%)
$(UNIT_MAKERS): $(BUILD)/%: $(BUILD)/obj/test/unit/%.c.o $(UNIT_A)
	$(call say,LD,$@) $(CC) $(CFLAGS) $(PLAIN) $(SAN) $^ $(COLLECTOR_LIBS) -o $@

unit-programs: $(UNIT_BIN) $(UNIT_MAKERS)
.PHONY: unit-programs

unit: unit-programs $(BUILD)/gpuprof-collector
	$(Q)failed=0; for t in $(UNIT_BIN); do \
		CMOCKA_MESSAGE_OUTPUT=TAP $$t || failed=1; done; exit $$failed

-include $(UNIT_OBJ:.o=.d)
