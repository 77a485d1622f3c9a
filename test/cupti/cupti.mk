# SPDX-License-Identifier: Apache-2.0
# What the tests of inject/cupti/ need besides the library: a program that loads a libcupti as the
# library would, and stand-ins for libcupti.

CUPTI_PROBE := $(BUILD)/cupti-tests/cupti_probe

$(CUPTI_PROBE): test/cupti/cupti_probe.c $(INJECT_A)
	@mkdir -p $(@D)
	$(call say,CCLD,$@) $(CC) $(STD) $(WARN) $(CFLAGS) $(SAN) -Iinject -Iformats -MMD -MP -MF $@.d \
		$(with_inject) -o $@ -ldl

# tiny_cupti.c under each soname; in folders, so that a test can copy what it needs.
TINY_CUPTI := $(patsubst %,$(BUILD)/cupti-tests/libcupti.so.%,11.8 12 13)
TINY_VERSION_11.8 := 18
TINY_VERSION_12 := 22
TINY_VERSION_13 := 130000
$(TINY_CUPTI): $(BUILD)/cupti-tests/libcupti.so.%: test/cupti/tiny_cupti.c
	@mkdir -p $(@D)
	$(call say,LD,$@) $(CC) $(STD) $(WARN) $(CFLAGS) -shared -fPIC -DTINY_VERSION=$(TINY_VERSION_$*) \
		-Wl,-soname,libcupti.so.$* $< -o $@

unit-programs: $(CUPTI_PROBE) $(TINY_CUPTI)

-include $(CUPTI_PROBE).d
