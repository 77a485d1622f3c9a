# SPDX-License-Identifier: Apache-2.0
# `make check-consumers`: other people's readers on our traces. By hand: it fetches them from PyPI.

check-consumers: all programs $(BUILD)/make_gpu $(BUILD)/make_raw $(BUILD)/make_stacks
	$(Q)/usr/bin/python3 test/consumers/check_traces.py $(BUILD) $(TORCH_AT)
