# SPDX-License-Identifier: Apache-2.0
# make torture: ends and cuts at random moments; writes test/RELIABILITY.md. LONG=1: twenty times as
# many, by hand; SEED=n: others.

TORTURE_FACTOR := $(if $(LONG),20,1)
SEED ?= 20260101

.PHONY: torture
torture: all programs
	$(Q)/usr/bin/python3 test/torture/torture.py --factor $(TORTURE_FACTOR) --seed $(SEED) \
		--output test/RELIABILITY.md
