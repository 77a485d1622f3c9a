# SPDX-License-Identifier: Apache-2.0
# `make check-gpu`: acceptance on a machine with a GPU.

CUPTI_FLOOR := $(BUILD)/gpu/cupti_floor.so

check-gpu: lib collector-bin $(CUPTI_FLOOR)
	$(Q)python3 test/gpu/check_gpu.py

programs: $(CUPTI_FLOOR)

$(CUPTI_FLOOR): test/gpu/cupti_floor.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(CFLAGS) $(STD) $(WARN) $(SAN) -fPIC -shared -Iinject -Iformats -MMD -o $@ $< -ldl

-include $(CUPTI_FLOOR:.so=.d)
