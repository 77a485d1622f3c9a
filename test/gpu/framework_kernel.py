# SPDX-License-Identifier: Apache-2.0
"""framework_work.py's kernel for Triton, which looks for names in the kernel's own module."""

import triton  # pylint: disable=import-error
import triton.language as tl  # pylint: disable=import-error


@triton.jit
def gpuprof_triton_known(x, y, size, BLOCK: tl.constexpr):  # pylint: disable=invalid-name
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < size) + tl.load(y + at, mask=at < size)
    tl.store(x + at, value, mask=at < size)
