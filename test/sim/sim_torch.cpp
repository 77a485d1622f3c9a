/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_torch.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <variant>
#include <vector>

#define VISIBLE __attribute__((visibility("default")))

namespace
{

/* What versions differ in. */
struct Layout {
    const char *name;
    bool old_strings;
    bool keywords;   /* keyword arguments behind the others */
    unsigned tensor; /* where a tensor has its sizes */
    unsigned list;   /* where a list has its vector */
    uint32_t tag;    /* of a list */
    enum { GOOD, SHIFTED, BAD_INPUTS, BAD_TENSORS } fault;
};

const Layout layouts[] = {
    {"2.1", false, false, 72, 24, 13, Layout::GOOD},
    {"2.1-old", true, false, 72, 24, 13, Layout::GOOD},
    {"2.4-old", true, true, 64, 16, 13, Layout::GOOD},
    {"2.11", false, true, 64, 16, 14, Layout::GOOD},
    {"2.15", false, true, 56, 16, 14, Layout::GOOD},
    {"unknown", false, true, 64, 16, 14, Layout::SHIFTED},
    {"hostile", false, true, 64, 16, 14, Layout::BAD_INPUTS},
    {"hostile-tensors", false, true, 64, 16, 14, Layout::BAD_TENSORS},
};

const Layout &layout()
{
    static const Layout *const found = [] {
        const char *wanted = getenv("SIMTORCH_LAYOUT");
        for (const Layout &l : layouts)
            if (strcmp(l.name, wanted ? wanted : "2.11") == 0)
                return &l;
        fprintf(stderr, "SIMTORCH_LAYOUT=%s: not known\n", wanted);
        abort();
    }();
    return *found;
}

} // namespace

/* ---- As PyTorch declares them ---------------------------------------------------------------- */

namespace c10
{

struct VISIBLE UndefinedTensorImpl {
    static uint64_t _singleton[32];
};
uint64_t UndefinedTensorImpl::_singleton[32];

} // namespace c10

namespace at
{

struct RecordFunction;

struct ObserverContext {
    virtual ~ObserverContext() = default;
};

class RecordFunctionCallback
{
  public:
    using Start = std::unique_ptr<ObserverContext> (*)(const RecordFunction &);
    using End = void (*)(const RecordFunction &, ObserverContext *);
    Start start;
    End end;
    double probability;
    bool scopes[10];
    bool needs_inputs;
    bool needs_outputs;
    bool needs_ids;
};
static_assert(sizeof(RecordFunctionCallback) == 40, "as PyTorch's");

struct VISIBLE RecordFunction {
    const char *name() const;
    size_t num_inputs() const;
    static uint64_t currentThreadId();
};

VISIBLE uint64_t addGlobalCallback(RecordFunctionCallback callback);
VISIBLE void disableCallback(uint64_t handle);
VISIBLE void reenableCallback(uint64_t handle);

} // namespace at

namespace
{

struct Schema {
    std::string name;
    size_t taken; /* inputs */
};

/* One whose name ends so is called by an interpreter, with all that lies on its stack. */
const char on_stack[] = "_on_stack";

const Schema &schema(const std::string &name, size_t given)
{
    size_t at = name.rfind(on_stack);
    size_t taken = given - (at != std::string::npos && at + sizeof on_stack - 1 == name.size());
    static std::mutex lock;
    static auto &all = *new std::map<std::pair<std::string, size_t>, std::unique_ptr<Schema>>;
    std::lock_guard<std::mutex> guard(lock);
    std::unique_ptr<Schema> &found = all[{name, taken}];
    if (!found)
        found = std::make_unique<Schema>(Schema{name, taken});
    return *found;
}

struct Value {
    uint64_t payload = 0;
    uint32_t tag = 0;
};

struct Pair {
    at::RecordFunctionCallback::Start start;
    at::RecordFunctionCallback::End end;
};

template <class T> struct Small { /* c10::SmallVector<T, 4> */
    void *begin = data;
    size_t count = 0;
    size_t capacity = 4;
    T data[4] = {};
};

struct OldString { /* the address of its text; lengths and a count stand before that */
    char *text;
    explicit OldString(const std::string &from) : text(strdup(from.c_str()))
    {
    }
    ~OldString()
    {
        free(text);
    }
    OldString(const OldString &) = delete;
    OldString &operator=(const OldString &) = delete;
};

struct NoKeywords {
};
template <bool is> struct Shift {
};
template <> struct Shift<true> {
    uint64_t words[2] = {7, 7};
};

template <class String, bool keywords, bool shifted> struct Function {
    Small<Pair> callbacks;
    uint64_t thread = 0;
    uint8_t scope = 0;
    bool needs[3] = {};
    bool called = true;
    Small<std::unique_ptr<at::ObserverContext>> contexts;
    [[no_unique_address]] Shift<shifted> shift;
    std::variant<String, std::reference_wrapper<const Schema>> fn;
    int64_t sequence = -1;
    const Value *inputs = nullptr;
    size_t input_count = 0;
    [[no_unique_address]] std::conditional_t<keywords, std::unordered_map<std::string, Value>,
                                             NoKeywords>
        keyword_inputs;
    std::vector<Value> outputs;
    uint64_t forward = 0;
    uint64_t handle = 0;
    bool is_async = false;

    template <class Form, class From> Function(Form form, From &&from) : fn(form, from)
    {
    }
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
using New = Function<std::string, true, false>;
using NewPlain = Function<std::string, false, false>;
using Old = Function<OldString, true, false>;
using OldPlain = Function<OldString, false, false>;
using Unknown = Function<std::string, true, true>;
static_assert(offsetof(New, scope) == 96 && offsetof(New, fn) == 160 &&
                  offsetof(New, sequence) == 200 && offsetof(New, forward) == 304,
              "2.4 and later, as offsetof says with PyTorch's headers");
static_assert(offsetof(NewPlain, forward) == 248, "2.1 to 2.3");
static_assert(offsetof(Old, sequence) == 176 && offsetof(Old, inputs) == 184 &&
                  offsetof(Old, forward) == 280,
              "2.4 to 2.6 with the old form of strings");
static_assert(offsetof(OldPlain, forward) == 224, "2.1 to 2.3 with that");
#pragma GCC diagnostic pop

/* ---- What operators are called with ---------------------------------------------------------- */

enum Tag { NONE = 0, TENSOR = 1, DOUBLE = 3, INT = 5, STRING = 11 };

/* Everything that one operator's inputs are made of. */
class Inputs
{
  public:
    std::vector<Value> values;

    explicit Inputs(const char *text)
    {
        while (*text)
            values.push_back(parse(text));
    }

  private:
    std::vector<std::unique_ptr<uint64_t[]>> storage;
    std::vector<std::unique_ptr<std::vector<Value>>> lists;

    uint64_t keep(std::unique_ptr<uint64_t[]> words)
    {
        storage.push_back(std::move(words));
        return reinterpret_cast<uint64_t>(storage.back().get());
    }

    uint64_t tensor(unsigned type, const std::vector<uint64_t> &sizes, bool is_meta)
    {
        auto words = std::make_unique<uint64_t[]>(32);
        uint64_t elements = 1;
        for (unsigned i = 0; i < 32; i++)
            words[i] = 0x5a5a5a5a5a5a5a5a; /* what nobody has set says nothing */
        if (layout().fault == Layout::BAD_TENSORS)
            return keep(std::move(words));
        uint64_t *at = &words[layout().tensor / 8];
        at[0] = sizes.size();
        if (sizes.size() <= 5) {
            std::copy(sizes.begin(), sizes.end(), at + 1);
        } else {
            auto apart = std::make_unique<uint64_t[]>(2 * sizes.size());
            std::copy(sizes.begin(), sizes.end(), apart.get());
            at[1] = keep(std::move(apart));
        }
        for (uint64_t size : sizes)
            elements *= size;
        at[11] = 0; /* offset */
        at[12] = elements;
        uint16_t short_type = static_cast<uint16_t>(type);
        memcpy(&at[13], &short_type, sizeof short_type);
        const int8_t device[3] = {static_cast<int8_t>(is_meta ? 14 : 1), 0, 1}; /* there is one */
        memcpy(reinterpret_cast<char *>(&at[13]) + 2, device, sizeof device);
        return keep(std::move(words));
    }

    uint64_t list(const char *&text)
    {
        auto words = std::make_unique<uint64_t[]>(8);
        lists.push_back(std::make_unique<std::vector<Value>>());
        std::vector<Value> *v = lists.back().get();
        std::vector<Value> its;
        while (*text != ')')
            its.push_back(parse(text));
        text++;
        *v = std::move(its);
        words[0] = reinterpret_cast<uint64_t>(&layouts);
        for (unsigned at = 8; at < layout().list; at += 8)
            words[at / 8] = 1;
        Value *data = v->data();
        uint64_t vector[3] = {reinterpret_cast<uint64_t>(data),
                              reinterpret_cast<uint64_t>(data + v->size()),
                              reinterpret_cast<uint64_t>(data + v->capacity())};
        memcpy(&words[layout().list / 8], vector, sizeof vector);
        words[layout().list / 8 + 3] = reinterpret_cast<uint64_t>(&layouts);
        return keep(std::move(words));
    }

    Value parse(const char *&text)
    {
        Value v;
        char kind = *text++;
        char *end = const_cast<char *>(text);
        if (kind == 'I') {
            v = {static_cast<uint64_t>(strtoll(text, &end, 10)), INT};
        } else if (kind == 'D') {
            double number = strtod(text, &end);
            v.tag = DOUBLE;
            memcpy(&v.payload, &number, sizeof number);
        } else if (kind == 'B') {
            v = {static_cast<uint64_t>(strtoul(text, &end, 10)), layout().tag - 4};
        } else if (kind == 'U') {
            v = {reinterpret_cast<uint64_t>(c10::UndefinedTensorImpl::_singleton), TENSOR};
        } else if (kind == 'O') {
            v = {0x10, STRING};
        } else if (kind == '(') {
            text += *text == ' ';
            v = {list(text), layout().tag};
            end = const_cast<char *>(text);
        } else if (kind == 'T' || kind == 'M') {
            unsigned type = static_cast<unsigned>(strtoul(text, &end, 10));
            std::vector<uint64_t> sizes;
            for (end++; *end != ']'; end += *end == ',')
                sizes.push_back(strtoull(end, &end, 10));
            end++;
            v = {tensor(type, sizes, kind == 'M'), TENSOR};
        }
        text = end + (*end == ' ');
        return v;
    }
};

/* ---- Callbacks ------------------------------------------------------------------------------- */

struct Registered {
    at::RecordFunctionCallback callback;
    uint64_t handle;
    bool is_on;
};

std::mutex registry; /* PyTorch's, which a child must not inherit locked */
auto &registered = *new std::vector<Registered>; /* threads run on while exit() destroys */
std::atomic<uint64_t> version{1};                /* of the registry */
std::atomic<uint64_t> last_thread;
thread_local uint64_t this_number;
std::atomic<uint64_t> last_op;

void set_on(uint64_t handle, bool is_on)
{
    std::lock_guard<std::mutex> guard(registry);
    for (Registered &r : registered)
        if (r.handle == handle)
            r.is_on = is_on;
    version++;
}

/* As PyTorch's, each thread has a copy, and takes the lock when that is too old. */
std::vector<at::RecordFunctionCallback> active(int scope)
{
    static thread_local auto *copy = new std::vector<Registered>;
    static thread_local uint64_t copied;
    if (copied != version) {
        std::lock_guard<std::mutex> guard(registry);
        copied = version;
        *copy = registered;
    }
    std::vector<at::RecordFunctionCallback> found;
    for (const Registered &r : *copy)
        if (r.is_on && r.callback.scopes[scope])
            found.push_back(r.callback);
    return found;
}

/* In one piece: lines of threads do not mix. */
__attribute__((format(printf, 1, 2))) void log_line(const char *format, ...)
{
    static const char *const path = getenv("SIMTORCH_LOG");
    static int file = -1;
    static pid_t of;
    static std::mutex lock;
    char line[8192];
    va_list arguments;
    if (!path)
        return;
    std::lock_guard<std::mutex> guard(lock);
    if (of != getpid()) {
        of = getpid();
        file = open((std::string(path) + "." + std::to_string(of)).c_str(),
                    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
    va_start(arguments, format);
    int bytes = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (bytes >= static_cast<int>(sizeof line) ||
        write(file, line, static_cast<size_t>(bytes)) != bytes)
        abort();
}

} // namespace

namespace at
{

uint64_t addGlobalCallback(RecordFunctionCallback callback)
{
    std::lock_guard<std::mutex> guard(registry);
    registered.push_back({callback, registered.size() + 1, true});
    version++;
    return registered.size();
}

void disableCallback(uint64_t handle)
{
    set_on(handle, false);
}

void reenableCallback(uint64_t handle)
{
    set_on(handle, true);
}

uint64_t RecordFunction::currentThreadId()
{
    if (!this_number)
        this_number = ++last_thread;
    return this_number;
}

} // namespace at

/* ---- Operators ------------------------------------------------------------------------------- */

struct sim_op {
    virtual ~sim_op() = default;
    virtual const at::RecordFunction &function() const = 0;
    unsigned long number = ++last_op;
    std::vector<at::RecordFunctionCallback> callbacks;
    std::vector<std::unique_ptr<at::ObserverContext>> contexts;
    std::unique_ptr<Inputs> inputs;
};

namespace
{

template <class F> struct Op : sim_op {
    template <class Form, class From> Op(Form form, From &&from) : f(form, from)
    {
    }
    const at::RecordFunction &function() const override
    {
        return reinterpret_cast<const at::RecordFunction &>(f);
    }
    F f;
};

/* The object of the layout that was chosen, given to `what`. */
template <class Return, class What> Return with(const void *function, What what)
{
    const Layout &l = layout();
    if (l.fault == Layout::SHIFTED)
        return what(*static_cast<const Unknown *>(function));
    if (l.old_strings)
        return l.keywords ? what(*static_cast<const Old *>(function))
                          : what(*static_cast<const OldPlain *>(function));
    return l.keywords ? what(*static_cast<const New *>(function))
                      : what(*static_cast<const NewPlain *>(function));
}

template <class F>
std::unique_ptr<sim_op> make(const std::string &name, int scope, long sequence,
                             unsigned long forward, std::unique_ptr<Inputs> inputs)
{
    bool is_text = name.size() > 2 && name.compare(name.size() - 2, 2, "()") == 0;
    std::unique_ptr<Op<F>> op;
    if (is_text)
        op = std::make_unique<Op<F>>(std::in_place_index<0>, name);
    else
        op = std::make_unique<Op<F>>(std::in_place_index<1>, schema(name, inputs->values.size()));
    op->f.thread = at::RecordFunction::currentThreadId();
    op->f.scope = static_cast<uint8_t>(scope);
    op->f.sequence = sequence;
    op->f.forward = forward;
    op->f.handle = op->number;
    op->callbacks = active(scope);
    for (const at::RecordFunctionCallback &c : op->callbacks)
        op->f.needs[0] |= c.needs_inputs;
    if (op->f.needs[0] && !inputs->values.empty()) {
        op->f.inputs = inputs->values.data();
        op->f.input_count = inputs->values.size();
        if (layout().fault == Layout::BAD_INPUTS)
            op->f.inputs = reinterpret_cast<const Value *>(0x10);
    }
    op->inputs = std::move(inputs);
    return op;
}

std::unique_ptr<sim_op> make_op(const std::string &name, int scope, long sequence,
                                unsigned long forward, std::unique_ptr<Inputs> inputs)
{
    const Layout &l = layout();
    auto *maker = l.fault == Layout::SHIFTED ? make<Unknown>
                  : l.old_strings            ? (l.keywords ? make<Old> : make<OldPlain>)
                                             : (l.keywords ? make<New> : make<NewPlain>);
    return maker(name, scope, sequence, forward, std::move(inputs));
}

const char *text_of(const std::string &text)
{
    return text.c_str();
}

const char *text_of(const OldString &text)
{
    return text.text;
}

void start(sim_op &op)
{
    for (const at::RecordFunctionCallback &c : op.callbacks)
        op.contexts.push_back(c.start(op.function()));
}

void end(sim_op &op)
{
    for (size_t i = 0; i < op.callbacks.size(); i++)
        op.callbacks[i].end(op.function(), op.contexts[i].get());
}

} // namespace

const char *at::RecordFunction::name() const
{
    return with<const char *>(this, [](const auto &f) {
        return f.fn.index() == 0 ? text_of(std::get<0>(f.fn))
                                 : text_of(std::get<1>(f.fn).get().name);
    });
}

/* As PyTorch's: what an operator takes, whether or not anybody asked for it. */
size_t at::RecordFunction::num_inputs() const
{
    return with<size_t>(this, [](const auto &f) {
        return f.fn.index() == 0 ? f.input_count : std::get<1>(f.fn).get().taken;
    });
}

extern "C" {

VISIBLE sim_op *sim_op_begin(const char *name, int scope, long sequence, unsigned long forward,
                             const char *inputs)
{
    std::unique_ptr<sim_op> op =
        make_op(name, scope, sequence, forward, std::make_unique<Inputs>(inputs));
    log_line("B\t%ld\t%lu\t%zu\t%s\t%d\t%ld\t%lu\t%lu\t%s\n", syscall(SYS_gettid), op->number,
             op->callbacks.size(), name, scope, sequence, forward, sim_thread(), inputs);
    start(*op);
    return op.release();
}

VISIBLE void sim_op_end(sim_op *op)
{
    end(*op);
    log_line("E\t%ld\t%lu\n", syscall(SYS_gettid), op->number);
    delete op;
}

VISIBLE void sim_op_native(const char *name, unsigned long count)
{
    std::thread([=] {
        for (unsigned long i = 0; i < count; i++)
            sim_op_end(sim_op_begin(name, SIM_BACKWARD, -1, 0, ""));
    }).join();
}

VISIBLE int sim_callbacks(void)
{
    std::lock_guard<std::mutex> guard(registry);
    return static_cast<int>(std::count_if(registered.begin(), registered.end(),
                                          [](const Registered &r) { return r.is_on; }));
}

VISIBLE int sim_registered(void)
{
    std::lock_guard<std::mutex> guard(registry);
    return static_cast<int>(registered.size());
}

VISIBLE unsigned long sim_thread(void)
{
    return at::RecordFunction::currentThreadId();
}

VISIBLE void sim_op_repeat(const char *name, const char *inputs, unsigned long count)
{
    std::unique_ptr<sim_op> op =
        make_op(name, SIM_FUNCTION, -1, 0, std::make_unique<Inputs>(inputs));
    for (unsigned long i = 0; i < count; i++) {
        start(*op);
        end(*op);
        op->contexts.clear();
    }
}
}
