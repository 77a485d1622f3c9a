# SPDX-License-Identifier: Apache-2.0
# make fuzz: FUZZ_SECONDS of fuzzing of the readers with clang's libFuzzer, from the seeds of this
# folder; new inputs stay in $(BUILD)/fuzz/found. $(BUILD)/fuzz_replay runs the seeds in CI.

FUZZ_SECONDS ?= 60
FUZZ_CC ?= clang
FUZZ_FLAGS := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
FUZZ_READERS := $(filter-out $(patsubst %,collector/%.c,main launch child witness program manual \
	summary),$(COLLECTOR_SRC)) $(FORMATS_SRC)
FUZZ_OBJ := $(patsubst %,$(BUILD)/fuzz/obj/%.o,$(FUZZ_READERS) test/fuzz/fuzz_stream.c)

$(BUILD)/fuzz/obj/%.c.o: %.c
	@mkdir -p $(@D)
	$(call say,FUZZCC,$<) $(FUZZ_CC) $(STD) -Wall $(FUZZ_FLAGS) $(CJSON_CFLAGS) -Icollector \
		-Iformats -MMD -MP -c $< -o $@

$(BUILD)/fuzz/fuzz_stream: $(FUZZ_OBJ)
	$(call say,LD,$@) $(FUZZ_CC) -fsanitize=fuzzer,address,undefined $^ $(COLLECTOR_LIBS) -o $@

fuzz: $(BUILD)/fuzz/fuzz_stream
	@mkdir -p $(BUILD)/fuzz/found
	$(BUILD)/fuzz/fuzz_stream -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=20 \
		-close_fd_mask=2 -print_final_stats=1 -artifact_prefix=$(BUILD)/fuzz/ \
		$(BUILD)/fuzz/found test/fuzz/seeds

$(BUILD)/obj/test/fuzz/%.c.o: test/fuzz/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(STD) $(WARN) $(CFLAGS) $(SAN) -Icollector -Iformats \
		-MMD -MP -c $< -o $@

$(BUILD)/fuzz_replay: $(BUILD)/obj/test/fuzz/fuzz_stream.c.o \
		$(BUILD)/obj/test/fuzz/fuzz_replay.c.o $(FUZZ_READERS:%=$(BUILD)/obj/%.o)
	$(call say,LD,$@) $(CC) $(CFLAGS) $(SAN) $^ $(COLLECTOR_LIBS) -o $@

unit-programs: $(BUILD)/fuzz_replay

-include $(FUZZ_OBJ:.o=.d) $(wildcard $(BUILD)/obj/test/fuzz/*.d)
