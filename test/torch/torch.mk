# SPDX-License-Identifier: Apache-2.0
# `make check-torch`: a real PyTorch on the simulated CUDA. By hand: it fetches a wheel of 0.5 GB.

TORCH ?= 2.11.0
TORCH_AT := $(BUILD)/torch/$(TORCH)
TORCH_PYTHON ?= /usr/bin/python3

.PHONY: check-torch
check-torch: all sim unit-programs
	$(Q)PYTHON=$(TORCH_PYTHON) ./scripts/fetch-torch --version $(TORCH) $(BUILD)/torch
	$(Q)/usr/bin/python3 test/torch/make_standins.py $(TORCH_AT) $(SIM) $(CC)
	$(Q)TORCH=$(TORCH) /usr/bin/python3 -m pytest test/torch/check_torch.py test/torch/check_ops.py \
		test/torch/check_stacks.py test/torch/check_steps.py test/torch/check_users.py \
		test/torch/check_memory.py \
		test/torch/check_findings.py
