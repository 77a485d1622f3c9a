# SPDX-License-Identifier: Apache-2.0
# `make check-frameworks`: CuPy, JAX, Numba, ... on the simulated CUDA. By hand: it fetches 5 GB.

FRAMEWORKS ?= $(patsubst test/frameworks/%.txt,%,$(sort $(wildcard test/frameworks/*.txt)))
FRAMEWORKS_AT := $(BUILD)/frameworks
FRAMEWORKS_PYTHON ?= /usr/bin/python3

.PHONY: check-frameworks
check-frameworks: all sim
	$(Q)for name in $(FRAMEWORKS); do \
		PYTHON=$(FRAMEWORKS_PYTHON) ./scripts/fetch-framework $$name $(FRAMEWORKS_AT) && \
		/usr/bin/python3 test/frameworks/make_libraries.py $(FRAMEWORKS_AT)/$$name $(SIM) $(CC) \
			$$(sed -n 's/^# libraries: //p' test/frameworks/$$name.txt) || exit 1; \
	done
	$(Q)FRAMEWORKS="$(FRAMEWORKS)" /usr/bin/python3 -m pytest test/frameworks/check_frameworks.py
