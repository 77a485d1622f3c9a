/* SPDX-License-Identifier: Apache-2.0 */
#include "python/python_api.h"

#include <stdint.h>

#include "base/objects.h"

static const struct {
    const char *name;
    size_t at;
} symbols[] = {
    {"Py_IsInitialized", offsetof(struct python_api, is_initialized)},
    {"Py_AddPendingCall", offsetof(struct python_api, add_pending_call)},
    {"PyImport_GetModuleDict", offsetof(struct python_api, modules)},
    {"PyModule_GetDict", offsetof(struct python_api, module_dict)},
    {"PyImport_ImportModule", offsetof(struct python_api, import)},
    {"PyDict_New", offsetof(struct python_api, new_dict)},
    {"PyDict_SetItemString", offsetof(struct python_api, dict_set)},
    {"PyDict_GetItemString", offsetof(struct python_api, dict_get)},
    {"PyCFunction_NewEx", offsetof(struct python_api, new_function)},
    {"PyRun_StringFlags", offsetof(struct python_api, run)},
    {"PyDict_GetItem", offsetof(struct python_api, dict_find)},
    {"PyLong_FromVoidPtr", offsetof(struct python_api, number)},
    {"PyLong_AsVoidPtr", offsetof(struct python_api, address)},
    {"PyLong_AsLongLong", offsetof(struct python_api, value)},
    {"PyList_Append", offsetof(struct python_api, list_append)},
    {"PyTuple_GetItem", offsetof(struct python_api, tuple_item)},
    {"PyObject_CallFunctionObjArgs", offsetof(struct python_api, call)},
    {"PyUnicode_AsUTF8", offsetof(struct python_api, utf8)},
    {"PyErr_Occurred", offsetof(struct python_api, error)},
    {"PyErr_ExceptionMatches", offsetof(struct python_api, error_is)},
    {"PyExc_Exception", offsetof(struct python_api, exception)},
    {"PyErr_Clear", offsetof(struct python_api, clear_error)},
    {"Py_IncRef", offsetof(struct python_api, keep)},
    {"Py_DecRef", offsetof(struct python_api, release)},
    {"_Py_NoneStruct", offsetof(struct python_api, none)},
};

static int python_api_visit(const struct object *o, void *data)
{
    uintptr_t *found = data;
    unsigned count = 0;
    for (; count < sizeof symbols / sizeof symbols[0]; count++) {
        void *p = object_symbol(o, symbols[count].name);
        if (!p)
            return 0;
        found[symbols[count].at / sizeof *found] = (uintptr_t)p;
    }
    return 1;
}

const struct python_api *python_api_find(void)
{
    static struct python_api api;
    return api.none || objects_each(python_api_visit, &api) ? &api : NULL;
}
