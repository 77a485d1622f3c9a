/* SPDX-License-Identifier: Apache-2.0 */
#include "model/op_kind.h"

#include <string.h>

static bool begins_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

enum op_kind op_kind_of(unsigned scope, const struct kernel_name *text)
{
    if (scope == OP_SCOPE_BACKWARD)
        return OP_KIND_BACKWARD;
    if (!text)
        return OP_KIND_PLAIN;
    if (scope != OP_SCOPE_LABEL) /* where PyTorch's layout is not known, neither are the scopes */
        return begins_with(text->shown, "autograd::engine::") ? OP_KIND_BACKWARD : OP_KIND_PLAIN;
    switch (text->shown[0]) {
    case 'O':
        return begins_with(text->shown, OP_OPTIMIZER_PREFIX)      ? OP_KIND_OPTIMIZER
               : begins_with(text->shown, "Optimizer.zero_grad#") ? OP_KIND_ZERO_GRAD
                                                                  : OP_KIND_PLAIN;
    case 'P':
        return begins_with(text->shown, OP_PROFILER_PREFIX) ? OP_KIND_PROFILER : OP_KIND_PLAIN;
    case 'e':
        return begins_with(text->shown, "enumerate(DataLoader)#") ? OP_KIND_LOADER : OP_KIND_PLAIN;
    default: return OP_KIND_PLAIN;
    }
}

enum op_python op_python_of(const struct kernel_name *text)
{
    const char *shown = text && text->shown[0] == 'P' ? text->shown : "";
    return strcmp(shown, "PythonDispatchMode") == 0 ? OP_PYTHON_MODE
           : strcmp(shown, "PythonSubclass") == 0   ? OP_PYTHON_SUBCLASS
                                                    : OP_PYTHON_NONE;
}

const char *op_hook_name(const struct kernel_name *text)
{
    size_t prefix = strlen(OP_HOOK_PREFIX);
    return strncmp(text->shown, OP_HOOK_PREFIX, prefix) == 0 ? text->shown + prefix : NULL;
}
