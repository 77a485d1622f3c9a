# SPDX-License-Identifier: Apache-2.0
# make fuzz: FUZZ_SECONDS of fuzzing of the readers and of what is made of what they read, with
# clang's libFuzzer, from the seeds of this folder; new inputs stay in $(BUILD)/fuzz/found. make
# fuzz-afl: the same with AFL++ (afl-clang-fast, afl-fuzz), which leaves what it finds in
# $(BUILD)/fuzz/afl-found. $(BUILD)/fuzz_replay runs the seeds in CI.

FUZZ_SECONDS ?= 60
FUZZ_CC ?= clang
FUZZ_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZ_OWN_SRC := $(filter-out %/fuzz_replay.c,$(sort $(wildcard test/fuzz/*.c)))
FUZZ_SRC := $(filter-out %/main.c,$(COLLECTOR_SRC)) $(FORMATS_SRC) $(FUZZ_OWN_SRC)
FUZZ_OBJ := $(FUZZ_SRC:%=$(BUILD)/fuzz/obj/%.o)
FUZZ_AFL_OBJ := $(FUZZ_SRC:%=$(BUILD)/fuzz/afl/%.o)
FUZZ_CFLAGS = $(CPPFLAGS) -O1 -g $(FUZZ_SANITIZE) $(STD) -Wall $(CJSON_CFLAGS) -Icollector \
	-Iformats -Itest/fuzz -Itest/unit -MMD -MP

$(BUILD)/fuzz/obj/%.c.o: %.c
	@mkdir -p $(@D)
	$(call say,FUZZCC,$<) $(FUZZ_CC) -fsanitize=fuzzer-no-link $(FUZZ_CFLAGS) -c $< -o $@

$(BUILD)/fuzz/fuzz_stream: $(FUZZ_OBJ)
	$(call say,LD,$@) $(FUZZ_CC) -fsanitize=fuzzer,address,undefined $^ $(COLLECTOR_LIBS) -o $@

# Each seed as it is to be read by each of the ways.
.PHONY: fuzz-afl fuzz-start
fuzz-start: $(BUILD)/fuzz_replay
	$(Q)mkdir -p $(BUILD)/fuzz/found $(BUILD)/fuzz/start
	$(Q)$(BUILD)/fuzz_replay -o $(BUILD)/fuzz/start test/fuzz/seeds/* > /dev/null

fuzz: $(BUILD)/fuzz/fuzz_stream fuzz-start
	$< -max_total_time=$(FUZZ_SECONDS) -max_len=65536 -timeout=20 \
		-close_fd_mask=2 -print_final_stats=1 -artifact_prefix=$(BUILD)/fuzz/ \
		$(BUILD)/fuzz/found $(BUILD)/fuzz/start

$(BUILD)/fuzz/afl/%.c.o: %.c
	@mkdir -p $(@D)
	$(call say,AFLCC,$<) AFL_QUIET=1 afl-clang-fast $(FUZZ_CFLAGS) -c $< -o $@

$(BUILD)/fuzz/fuzz_stream_afl: $(FUZZ_AFL_OBJ)
	$(call say,LD,$@) AFL_QUIET=1 afl-clang-fast -fsanitize=fuzzer $(FUZZ_SANITIZE) $^ \
		$(COLLECTOR_LIBS) -o $@

# No terminal is needed, and no setting of the machine: it says in the end what it did.
fuzz-afl: $(BUILD)/fuzz/fuzz_stream_afl fuzz-start
	AFL_NO_UI=1 AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_NO_AFFINITY=1 \
		AFL_AUTORESUME=1 afl-fuzz -V $(FUZZ_SECONDS) -t 5000 -m none \
		-i $(BUILD)/fuzz/start -o $(BUILD)/fuzz/afl-found -- $< > $(BUILD)/fuzz/afl.log
	$(Q)grep -E '^(execs_|corpus_count|edges_|total_edges|saved_)' \
		$(BUILD)/fuzz/afl-found/default/fuzzer_stats

$(BUILD)/obj/test/fuzz/%.c.o: test/fuzz/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(STD) $(WARN) $(CFLAGS) $(SAN) -Icollector -Iformats -Itest/fuzz \
		-Itest/unit -MMD -MP -c $< -o $@

$(BUILD)/fuzz_replay: $(BUILD)/obj/test/fuzz/fuzz_replay.c.o $(FUZZ_OWN_SRC:%=$(BUILD)/obj/%.o) \
		$(COLLECTOR_A)
	$(call say,LD,$@) $(CC) $(CFLAGS) $(PLAIN) $(SAN) $^ $(COLLECTOR_LIBS) -o $@

unit-programs: $(BUILD)/fuzz_replay

-include $(FUZZ_OBJ:.o=.d) $(FUZZ_AFL_OBJ:.o=.d) $(wildcard $(BUILD)/obj/test/fuzz/*.d)
