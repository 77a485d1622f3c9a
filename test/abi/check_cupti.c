/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the functions and record fields that inject/ knows of CUPTI with the real headers; it is
 * compiled, never run. The test writes "declared.h" for each version of the headers:
 *   DECLARED_<name>             1 if they declare the function
 *   STRUCTURE_<record>          the newest structure of the record
 *   HAS_<record>_<field>        1 if that structure has the field
 */
#include <cupti.h>

#include "declared.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

#define DECLARED_0(name, returns, params)
#define DECLARED_1(name, returns, params)                                                          \
    _Static_assert(__builtin_types_compatible_p(returns(*) params, __typeof__(&name)), #name);
#define CUPTI_FUNCTION(name, required, returns, params)                                            \
    JOIN(DECLARED_, DECLARED_##name)                                                               \
    (name, returns, params) _Static_assert(DECLARED_##name || !(required),                         \
                                           #name " is not in all versions");
#include "cupti/cupti_functions.def"

#define HAS_0(structure, offset, width, member)
#define HAS_1(structure, offset, width, member)                                                    \
    _Static_assert(offsetof(structure, member) == (offset) &&                                      \
                       sizeof(((structure *)0)->member) == (width),                                \
                   #structure "." #member);
#define CUPTI_FIELD(record, field, offset, width, member)                                          \
    JOIN(HAS_, HAS_##record##_##field)(STRUCTURE_##record, offset, width, member)
#include "cupti/cupti_fields.def"

/* The rows of api_cupti.def speak of pointers and ints: the same registers. */
_Static_assert(sizeof(CUptiResult) == sizeof(int) && sizeof(CUpti_ActivityKind) == sizeof(int),
               "as ints");
_Static_assert(__builtin_types_compatible_p(CUptiResult (*)(CUpti_BuffersCallbackRequestFunc,
                                                            CUpti_BuffersCallbackCompleteFunc),
                                            __typeof__(&cuptiActivityRegisterCallbacks)),
               "two pointers");
_Static_assert(__builtin_types_compatible_p(CUptiResult (*)(CUpti_ActivityKind),
                                            __typeof__(&cuptiActivityEnable)) &&
                   __builtin_types_compatible_p(CUptiResult(*)(CUpti_ActivityKind),
                                                __typeof__(&cuptiActivityDisable)) &&
                   __builtin_types_compatible_p(CUptiResult(*)(void), __typeof__(&cuptiFinalize)),
               "one int, none");

/* Those of a subscriber (13.3) that are called for other clients alone. */
#if DECLARED_cuptiActivityEnable_v2
#define IS(name, ...)                                                                              \
    _Static_assert(__builtin_types_compatible_p(                                                   \
                       CUptiResult(*)(CUpti_SubscriberHandle, __VA_ARGS__), __typeof__(&name)),    \
                   #name)
IS(cuptiActivityEnableAndDump_v2, CUpti_ActivityKind, CUpti_ActivityConfig *);
IS(cuptiActivityEnableDriverApi_v2, uint32_t, uint8_t);
IS(cuptiActivityEnableRuntimeApi_v2, uint32_t, uint8_t);
IS(cuptiActivityPushExternalCorrelationId_v2, CUpti_ExternalCorrelationKind, uint64_t);
IS(cuptiActivityPopExternalCorrelationId_v2, CUpti_ExternalCorrelationKind, uint64_t *);
IS(cuptiGetTimestamp_v2, uint64_t *);
#endif
