/* SPDX-License-Identifier: Apache-2.0 */
#include "torch/nn_modules.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "python/python_api.h"
#include "record/thread.h"
#include "store/meta.h"
#include "torch/op_events.h"

#define FILE_INPUT 257 /* Py_file_input: a text of statements */
#define ASKS_MAX   10  /* attempts in which Python says that PyTorch is there, but has no hooks */

static const struct python_api *python; /* set by the writer before Python knows the rest */

/* ---- What Python calls ----------------------------------------------------------------------- */

static object_ptr none(void)
{
    python->keep(python->none);
    return python->none;
}

/* Made by the fixed text, and never freed: {address: text}, and a function that adds a module. */
static object_ptr learn;
static _Atomic(object_ptr) names;

/*
 * Returns the module's name, owned by the caller. Runs Python code only for a module that is new.
 */
static object_ptr nn_modules_text_of(object_ptr module)
{
    object_ptr known = atomic_load(&names), key = known ? python->number(module) : NULL;
    object_ptr text = key ? python->dict_find(known, key) : NULL;
    if (text)
        python->keep(text);
    else if (key)
        text = python->call(learn, module, NULL);
    if (key)
        python->release(key);
    return text;
}

static object_ptr module_begins(object_ptr self, const object_ptr *args, ptrdiff_t count)
{
    object_ptr text = count == 1 ? nn_modules_text_of(args[0]) : NULL;
    const char *bytes = text ? python->utf8(text) : NULL;
    (void)self;
    if (!bytes && python_is_interrupted(python))
        return NULL;
    if (bytes)
        op_module_begin(args[0], bytes);
    else
        python->clear_error();
    if (text)
        python->release(text);
    return none();
}

static object_ptr module_ended(object_ptr self, const object_ptr *args, ptrdiff_t count)
{
    (void)self;
    if (count == 1)
        op_module_end(args[0]);
    return none();
}

static object_ptr hook_begins(object_ptr self, const object_ptr *args, ptrdiff_t count)
{
    const char *text = count == 1 ? python->utf8(args[0]) : NULL;
    (void)self;
    if (!text && python_is_interrupted(python))
        return NULL;
    if (!text)
        python->clear_error();
    return python->number((const void *)(uintptr_t)(text ? op_hook_begin(text) : 0));
}

static object_ptr hook_ended(object_ptr self, const object_ptr *args, ptrdiff_t count)
{
    (void)self;
    if (count == 1)
        op_hook_end((uintptr_t)python->address(args[0]));
    return none();
}

static struct python_method methods[] = {
    {"begin", {.fast = module_begins}, METHOD_FASTCALL, NULL},
    {"end", {.fast = module_ended}, METHOD_FASTCALL, NULL},
    {"begin_hook", {.fast = hook_begins}, METHOD_FASTCALL, NULL},
    {"end_hook", {.fast = hook_ended}, METHOD_FASTCALL, NULL}};
#define METHOD_COUNT (sizeof methods / sizeof methods[0])

/*
 * Runs with the globals of torch.nn.modules.module, so that torch.compile finds the names that the
 * hooks use, and with locals of our own. torch.compile traces the hooks up to their return, takes
 * their closure variables for constant, and must not compile them where they are called from
 * elsewhere (skip_code): otherwise it compiles again, with a warning, for each new module. It also
 * warns that there are such hooks, which may be an error in a program that asks for that. A text is
 * "CLASS ROOT.path": wrappers have the path of the module they wrap. A module that no root module
 * contains is a root itself. `names` stays None while PyTorch is still being imported. Lightning
 * asks its profiler, whichever that is, to measure each hook; it may be imported later, before a
 * new module is called. If its PyTorchProfiler is used, that makes its own labels.
 */
static const char hooks[] =
    "def watch(begin_hook, end_hook, modules, contextmanager, wraps):\n"
    "    def wrap(profile):\n"
    "        @contextmanager\n"
    "        @wraps(profile)\n"
    "        def measured(self, action_name):\n"
    "            own = type(self).__name__ == 'PyTorchProfiler'\n"
    "            hook = 0 if own else begin_hook(f'[pl][profile]{action_name}')\n"
    "            try:\n"
    "                with profile(self, action_name) as value:\n"
    "                    yield value\n"
    "            finally:\n"
    "                end_hook(hook)\n"
    "        return measured\n"
    "    watched = set()\n"
    "    def look():\n"
    "        for name in ('lightning.pytorch', 'pytorch_lightning'):\n"
    "            module = modules.get(name + '.profilers.profiler')\n"
    "            kind = getattr(module, 'Profiler', None)\n"
    "            if kind is not None and name not in watched:\n"
    "                watched.add(name)\n"
    "                kind.profile = wrap(kind.profile)\n"
    "    return look\n"
    "def install(begin, end, ref, look):\n"
    "    names, refs = {}, {}\n"
    "    compiling = getattr(torch.compiler, 'is_compiling', torch._utils.is_compiling)\n"
    "    wrappers = ('_orig_mod', '_fsdp_wrapped_module', '_checkpoint_wrapped_module')\n"
    "    def path_of(path):\n"
    "        parts = [part for part in path.split('.') if part not in wrappers]\n"
    "        while parts and parts[0] in ('module', ''):\n"
    "            parts = parts[1:]\n"
    "        return parts\n"
    "    def keep(module, text):\n"
    "        number = id(module)\n"
    "        def forget(_, names=names, refs=refs, number=number):\n"
    "            names.pop(number, None)\n"
    "            refs.pop(number, None)\n"
    "        refs[number] = ref(module, forget)\n"
    "        names[number] = text\n"
    "    def learn(module):\n"
    "        text = type(module).__name__ + ' ' + type(module).__name__\n"
    "        try:\n"
    "            look()\n"
    "            found = []\n"
    "            for path, m in module.named_modules():\n"
    "                found.append((path_of(path), m))\n"
    "                if not found[-1][0]:\n"
    "                    root = type(m).__name__\n"
    "            for parts, m in found:\n"
    "                keep(m, type(m).__name__ + ' ' + '.'.join([root] + parts))\n"
    "        except Exception:\n"
    "            pass\n"
    "        return names.get(id(module), text)\n"
    "    def before(module, args):\n"
    "        if compiling():\n"
    "            return\n"
    "        begin(module)\n"
    "    def after(module, args, result):\n"
    "        if compiling():\n"
    "            return\n"
    "        end(module)\n"
    "    frames = torch._C._dynamo.eval_frame\n"
    "    def skip(code):\n"
    "        action = frames._FrameAction\n"
    "        strategy = frames._FrameExecStrategy(action.SKIP, action.DEFAULT)\n"
    "        frames.set_code_exec_strategy(code, strategy)\n"
    "    for function in (path_of, keep, learn, before, after, look):\n"
    "        getattr(frames, 'skip_code', skip)(function.__code__)\n"
    "    register_module_forward_pre_hook(before)\n"
    "    register_module_forward_hook(after, always_call=True)\n"
    "    return names, learn\n"
    "if not getattr(getattr(torch, '__spec__', None), '_initializing', False):\n"
    "    from _weakref import ref\n"
    "    from warnings import filterwarnings\n"
    "    filterwarnings('ignore', 'Using `torch.compile.module.` when there are global hooks')\n"
    "    from sys import modules\n"
    "    from contextlib import contextmanager\n"
    "    from functools import wraps\n"
    "    look = watch(begin_hook, end_hook, modules, contextmanager, wraps)\n"
    "    names, learn = install(begin, end, ref, look)\n"
    "    look()\n"
    "else:\n"
    "    names = None\n";

/* ---- Setting them ---------------------------------------------------------------------------- */

enum progress { NOT_ASKED, ASKED, LATER, SET, FAILED };

/* The child of a fork inherits them, as it does Python. */
static struct {
    _Atomic uint32_t progress;  /* enum progress; the writer sets ASKED, Python's answer the rest */
    uint32_t asks;              /* how often Python has answered that it has no hooks */
    const char *missing_reason; /* used, like the rest, by the writer */
    const char *reported;
    uint64_t reported_epoch;
} state = {.missing_reason = "absent: PyTorch is not loaded"};

static bool give(object_ptr locals, struct python_method *method)
{
    object_ptr function = python->new_function(method, NULL, NULL);
    bool is_given = function && python->dict_set(locals, method->name, function) == 0;
    if (function)
        python->release(function);
    return is_given;
}

/* Called by Python's main thread, between two of its instructions. */
static int set_hooks(void *data)
{
    (void)data;
    enum progress progress = LATER;
    object_ptr torch = python->dict_get(python->modules(), "torch.nn.modules.module");
    object_ptr globals = torch ? python->module_dict(torch) : NULL;
    if (globals && python->dict_get(globals, "register_module_forward_hook")) {
        object_ptr locals = python->new_dict(), found = NULL;
        bool is_given = locals;
        for (unsigned i = 0; i < METHOD_COUNT; i++)
            is_given = is_given && give(locals, &methods[i]);
        object_ptr result = is_given ? python->run(hooks, FILE_INPUT, globals, locals, NULL) : NULL;
        if (result) {
            python->release(result);
            found = python->dict_get(locals, "names");
        }
        bool is_set = found && found != python->none;
        progress = is_set ? SET : found || ++state.asks < ASKS_MAX ? LATER : FAILED;
        if (is_set) {
            learn = python->dict_get(locals, "learn");
            python->keep(learn);
            python->keep(found);
            atomic_store(&names, found);
        }
        if (locals)
            python->release(locals);
    }
    int status = python_is_interrupted(python) ? -1 : 0;
    if (status == 0)
        python->clear_error();
    atomic_store(&state.progress, progress);
    return status;
}

void nn_modules_look(void)
{
    uint32_t progress = atomic_load(&state.progress);
    if (progress == ASKED || progress == SET || progress == FAILED)
        return;
    if (!python)
        python = python_api_find();
    if (!python) {
        state.missing_reason = "absent: this Python does not export its C API";
        return;
    }
    if (!python->is_initialized())
        return;
    state.missing_reason =
        "absent: Python's main thread ran no Python code in which to set the hooks";
    atomic_store(&state.progress, ASKED);
    if (python->add_pending_call(set_hooks, NULL) != 0) /* Python's list of pending calls is full */
        atomic_store(&state.progress, LATER);
}

void nn_modules_describe(struct thread *writer)
{
    uint32_t progress = atomic_load(&state.progress);
    const char *text = progress == SET      ? "on"
                       : progress == FAILED ? "absent: this PyTorch refused the hooks"
                                            : state.missing_reason;
    if (text == state.reported && state.reported_epoch == writer->epoch)
        return;
    state.reported = text;
    state.reported_epoch = writer->epoch;
    meta_append_text(writer, "modules", text);
}
