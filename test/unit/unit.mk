# SPDX-License-Identifier: Apache-2.0
# Unit tests of formats/, collector/ and parts of inject/ (cmocka, TAP): `make unit` builds and runs
# them all.

UNIT_SRC := $(sort $(wildcard test/unit/test_*.c))
UNIT_HELP_SRC := test/unit/stream_builder.c
UNIT_BIN := $(UNIT_SRC:test/unit/%.c=$(BUILD)/unit/%)
UNIT_OBJ := $(UNIT_SRC:%=$(BUILD)/obj/%.o) $(UNIT_HELP_SRC:%=$(BUILD)/obj/%.o)
UNIT_COLLECTOR_OBJ := $(filter-out $(BUILD)/obj/collector/main.c.o,$(COLLECTOR_OBJ))
# launch.c and manual.c print the verb table, which is in main.c; no unit test needs them.
UNIT_COLLECTOR_OBJ := $(filter-out $(patsubst %,$(BUILD)/obj/collector/%.c.o,launch child witness \
	program manual summary),$(UNIT_COLLECTOR_OBJ))
UNIT_LIBS := -lcmocka $(COLLECTOR_LIBS)

$(BUILD)/obj/test/unit/%.c.o: test/unit/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(STD) $(WARN) $(CFLAGS) $(SAN) -Itest/unit -Icollector -Iformats \
		-MMD -MP -c $< -o $@

$(UNIT_BIN): $(BUILD)/unit/%: $(BUILD)/obj/test/unit/%.c.o $(UNIT_HELP_SRC:%=$(BUILD)/obj/%.o) \
		$(UNIT_COLLECTOR_OBJ) $(FORMATS_OBJ)
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(CFLAGS) $(SAN) $^ $(UNIT_LIBS) -o $@

# Of the library, a part each, with doubles of what it calls.
UNIT_INJECT_TESTS := test_cfi test_stack test_modules test_python test_cost test_locks \
	test_resolve test_status
UNIT_INJECT_SRC := test/unit/append_double.c $(UNIT_INJECT_TESTS:%=test/unit/%.c)
$(UNIT_INJECT_SRC:%=$(BUILD)/obj/%.o): override CFLAGS += -Iinject
$(BUILD)/unit/test_cfi: $(BUILD)/obj/inject/cfi.c.o
$(BUILD)/unit/test_stack: $(patsubst %,$(BUILD)/obj/%.c.o,inject/stack test/unit/append_double)
$(BUILD)/unit/test_modules: $(patsubst %,$(BUILD)/obj/%.c.o,test/unit/append_double \
	$(addprefix inject/,modules program_file cfi futex signals))
$(BUILD)/unit/test_python: $(patsubst %,$(BUILD)/obj/inject/%.c.o,python_walk python_code \
	python_text python_layout memory_read)

$(BUILD)/unit/test_locks: $(patsubst %,$(BUILD)/obj/inject/%.c.o,labels python_places futex \
	signals)
$(BUILD)/unit/test_status: $(patsubst %,$(BUILD)/obj/inject/%.c.o,status futex leader signals)
$(BUILD)/unit/test_resolve: $(patsubst %,$(BUILD)/obj/inject/%.c.o,resolve futex signals)
$(BUILD)/unit/test_cost: $(patsubst %,$(BUILD)/obj/inject/%.c.o,cost_sums thread_cost)
$(BUILD)/unit/test_ladder: $(BUILD)/obj/inject/ladder.c.o
$(BUILD)/obj/test/unit/test_ladder.c.o: override CFLAGS += -Iinject

# Makers of stream files: make_stream for measuring, make_corpus for test/corpus/, make_gpu,
# make_stacks.
UNIT_MAKERS := $(BUILD)/make_stream $(BUILD)/make_corpus $(BUILD)/make_gpu \
	$(BUILD)/make_stacks
$(UNIT_MAKERS): $(BUILD)/%: $(BUILD)/obj/test/unit/%.c.o \
		$(UNIT_HELP_SRC:%=$(BUILD)/obj/%.o) $(FORMATS_OBJ)
	$(call say,LD,$@) $(CC) $(CFLAGS) $(SAN) $^ -lzstd -o $@

# Archives come from the collector's own writer.
UNIT_ZIP_OBJ := $(BUILD)/obj/test/unit/make_zip.c.o \
	$(patsubst %,$(BUILD)/obj/collector/%.c.o,zip_writer output new_file zstream file_at array)
$(BUILD)/make_zip: $(UNIT_ZIP_OBJ) $(FORMATS_OBJ)
	$(call say,LD,$@) $(CC) $(CFLAGS) $(SAN) $^ -lz -o $@

unit-programs: $(UNIT_BIN) $(UNIT_MAKERS) $(BUILD)/make_zip
.PHONY: unit-programs

unit: unit-programs $(BUILD)/gpuprof-collector
	$(Q)failed=0; for t in $(UNIT_BIN); do \
		CMOCKA_MESSAGE_OUTPUT=TAP $$t || failed=1; done; exit $$failed

-include $(UNIT_OBJ:.o=.d) $(UNIT_INJECT_SRC:%=$(BUILD)/obj/%.d) \
	$(UNIT_MAKERS:$(BUILD)/%=$(BUILD)/obj/test/unit/%.c.d) \
	$(BUILD)/obj/test/unit/make_zip.c.d $(wildcard $(BUILD)/obj/inject/*.c.d)
