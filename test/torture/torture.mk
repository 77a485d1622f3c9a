# SPDX-License-Identifier: Apache-2.0
# make torture: ends and cuts at random moments; writes test/RELIABILITY.md. LONG=1: 100,000 process
# lives, by hand; SEED=n: others.

SEED ?= 20260101

.PHONY: torture
torture: all programs
	$(Q)/usr/bin/python3 test/torture/torture.py $(if $(LONG),--long) --seed $(SEED) \
		--output test/RELIABILITY.md
