# SPDX-License-Identifier: Apache-2.0
# `make check-gpu`: acceptance on a machine with a GPU.

check-gpu: $(BUILD)/libgpuprof.so $(BUILD)/gpuprof-collector
	$(Q)python3 test/gpu/check_gpu.py
