/* SPDX-License-Identifier: Apache-2.0 */
/* Operators of the simulated PyTorch, after a CUDA call: torch_ops SCENARIO. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim_torch.h"
#include "tiny_cudart.h"

#define WAIT_MS     10000
#define THREADS     64
#define MANY_LABELS 70000
#define MANY_INPUTS 270000
#define WIDE_INPUTS 5000

static void nap_ms(long ms)
{
    const struct timespec nap = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&nap, NULL);
}

static void call_cuda(void)
{
    void *memory;
    if (cudaMalloc(&memory, 64) != 0)
        exit(8);
}

static void wait_for(int count)
{
    for (int i = 0; i < WAIT_MS; i++, nap_ms(1))
        if (sim_callbacks() == count)
            return;
    fprintf(stderr, "%d callbacks in place of %d\n", sim_callbacks(), count);
    exit(9);
}

static struct sim_op *begin(const char *name, const char *inputs)
{
    return sim_op_begin(name, SIM_FUNCTION, -1, 0, inputs);
}

static void leaf(const char *name, const char *inputs)
{
    sim_op_end(begin(name, inputs));
}

/* One of each kind, and enough of them that what is looked at first is believed. */
static void values(void)
{
    for (long i = 0; i < 40; i++) {
        leaf("aten::relu_on_stack", "T6[2,3] T6[2]");
        struct sim_op *label = sim_op_begin("step ()", SIM_LABEL, -1, 0, "I5");
        struct sim_op *linear =
            sim_op_begin("aten::linear", SIM_FUNCTION, i, 0, "T6[4,16] T6[32,16] T6[32]");
        sim_op_end(sim_op_begin("aten::addmm", SIM_FUNCTION, i, 0,
                                "T6[32] T6[4,16] T6[16,32] I1 D0.5 I-7"));
        sim_op_end(linear);
        leaf("aten::conv2d", "T6[8,3,32,32] T6[16,3,3,3] U ( I2 I2 ) ( I1 I1 ) ( I1 I1 ) I1");
        leaf("aten::index", "T6[5] ( N T4[3] )");
        leaf("aten::_foreach_add_", "( T6[2,3] T15[4] ) ( T6[2,3] U ) I1");
        leaf("aten::to", "T5[1,2,3,4,5,6,7] O B1 B0 N");
        leaf("aten::empty", "( ) O N");
        leaf("aten::item", "T7[]");
        leaf("aten::zeros", "");
        leaf("aten::select", "T6[4000000000,0] I-9223372036854775808");
        sim_op_end(sim_op_begin("autograd::engine::evaluate_function: AddmmBackward0()",
                                SIM_BACKWARD, -1, 0, ""));
        sim_op_end(sim_op_begin("AddmmBackward0()", SIM_BACKWARD, i, sim_thread() + 3, "T6[4,32]"));
        sim_op_end(label);
    }
}

static void *end_it(void *op)
{
    sim_op_end(op);
    return NULL;
}

static void crossing(void)
{
    pthread_t thread;
    for (int i = 0; i < 20; i++) {
        struct sim_op *a = begin("a", "T6[1]"), *b = begin("b", "T6[2]"), *c = begin("c", "T6[3]");
        sim_op_end(a);
        struct sim_op *d = begin("d", "");
        sim_op_end(c);
        if (pthread_create(&thread, NULL, end_it, d) || pthread_join(thread, NULL))
            exit(8);
        sim_op_end(b);
    }
}

static void *many(void *data)
{
    char inputs[64];
    long of = (long)data;
    for (long i = 0; i < 100; i++) {
        snprintf(inputs, sizeof inputs, "T6[%ld,%ld] I%ld", i % 7, of % 5, i % 3);
        struct sim_op *outer = sim_op_begin("outer", SIM_FUNCTION, i, 0, inputs);
        struct sim_op *label = sim_op_begin("label ()", SIM_LABEL, -1, 0, "");
        sim_op_end(sim_op_begin("inner", SIM_BACKWARD, i, 1 + (unsigned long)of, "T6[8]"));
        sim_op_end(label);
        sim_op_end(outer);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t all[THREADS];
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&all[i], NULL, many, (void *)i))
            exit(8);
    for (long i = 0; i < THREADS; i++)
        pthread_join(all[i], NULL);
}

static void child(struct sim_op *op, int uses_cuda)
{
    leaf("in the child ()", "T6[2]");
    if (uses_cuda)
        call_cuda();
    sim_op_end(op);
    leaf("aten::linear", "T6[4,16]");
    exit(0);
}

/* The children's callbacks are their parent's. */
static void forks(void)
{
    values();
    for (int uses_cuda = 0; uses_cuda < 2; uses_cuda++) {
        struct sim_op *op = begin("around a fork", "");
        pid_t pid = fork();
        int status;
        if (pid == 0)
            child(op, uses_cuda);
        if (waitpid(pid, &status, 0) != pid || status != 0)
            exit(8);
        sim_op_end(op);
    }
    leaf("aten::linear", "T6[4,16]");
}

static void ends(void)
{
    begin("does not end", "T6[2]");
    exit(3);
}

static void is_killed(void)
{
    values();
    begin("does not end", "T6[2]");
    syscall(SYS_kill, getpid(), SIGKILL);
}

static void traced(void)
{
    for (int i = 0; i < 2; i++) {
        struct sim_op *fake = begin("aten::mm", "T6[2,2] M6[2,2]");
        struct sim_op *mode = begin("PythonDispatchMode", "");
        leaf("aten::empty", "I2");
        sim_op_end(fake); /* before what began in it */
        leaf("aten::mm", "T6[2,2] T6[2,2]");
        sim_op_end(mode);
        leaf("aten::cat", "( M6[2,2] )");
        struct sim_op *sub = begin("PythonSubclass", "");
        leaf("aten::mm", "T6[2,2] T6[2,2]");
        sim_op_end(sub);
        struct sim_op *timed = sim_op_begin("compile (dynamo_timed)", SIM_LABEL, -1, 0, "");
        leaf("aten::mm", "T6[2,2] T6[2,2]");
        sim_op_end(timed);
        leaf("aten::mm", "T6[2,2] T6[2,2]");
    }
}

static void variants(void)
{
    char inputs[32];
    for (int i = 0; i < 400; i++) {
        snprintf(inputs, sizeof inputs, "T6[3] I%d", i);
        leaf("aten::add", inputs);
    }
    for (int i = 0; i < 400; i++) {
        snprintf(inputs, sizeof inputs, "T6[1,%d] ( I%d )", i, i);
        leaf("aten::convolution", inputs);
    }
    leaf("aten::mul", "T6[3] I399");
}

static void many_labels(void)
{
    char name[32];
    for (int i = 0; i < MANY_LABELS; i++) {
        snprintf(name, sizeof name, "label %d ()", i);
        sim_op_end(sim_op_begin(name, SIM_LABEL, -1, 0, ""));
    }
}

static void many_inputs(void)
{
    char inputs[32];
    for (int i = 0; i < MANY_INPUTS; i++) {
        snprintf(inputs, sizeof inputs, "T6[%d]", i);
        leaf("aten::add", inputs);
    }
}

static void pause_and_go(void)
{
    void (*stop)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "gpuprof_stop");
    void (*start)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "gpuprof_start");
    for (int i = 0; i < 3; i++) {
        struct sim_op *outer = begin("outer", "");
        stop();
        struct sim_op *inner = begin("in a pause", "");
        sim_op_end(outer);
        start();
        sim_op_end(inner);
        leaf("after it", "T6[2]");
    }
}

/* Labels, inputs and names have had their callbacks, and the last two are not wanted any more. */
static int has_labels_only(void)
{
    return sim_registered() == 3 && sim_callbacks() == 1;
}

/* Until that is so, and on. */
static void governed(void)
{
    for (int after = 0, i = 0; after < 100 && i < 20 * WAIT_MS; i++) {
        struct sim_op *label = sim_op_begin("step ()", SIM_LABEL, -1, 0, "");
        leaf("aten::add", "T6[3] T6[3] I1");
        leaf("aten::mm", "T6[3,3] T6[3,3]");
        sim_op_end(label);
        after += has_labels_only();
        usleep(50);
    }
    if (!has_labels_only())
        exit(9);
}

static double ns_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* 200,000 operators a second, as far as the machine has turns for them. */
static struct spent {
    double cpu_ns; /* of this thread, for the operators alone */
    double wall_ns;
    double count;
} paced(double seconds)
{
    struct spent s = {0, 0, 0};
    double begin = ns_of(CLOCK_MONOTONIC);
    while (s.wall_ns < seconds * 1e9) {
        double before = ns_of(CLOCK_THREAD_CPUTIME_ID);
        sim_op_repeat("aten::view", "T6[8,16,64] ( I128 I64 )", 200);
        s.cpu_ns += ns_of(CLOCK_THREAD_CPUTIME_ID) - before;
        s.count += 200;
        s.wall_ns = ns_of(CLOCK_MONOTONIC) - begin;
        if (s.wall_ns < s.count * 5000)
            usleep((useconds_t)((s.count * 5000 - s.wall_ns) / 1000));
    }
    return s;
}

/*
 * Prints what is spent on telling of operators, by this thread's clock: in all, in ns, and at last,
 * as a share of the time; and whether there is anybody yet who is told. Bare comes first.
 */
static void rate(double seconds)
{
    struct spent bare = paced(0.3);
    double bare_ns = bare.cpu_ns / bare.count;
    call_cuda();
    wait_for(2);
    struct spent first = paced(seconds), last = paced(1);
    double last_ns = last.cpu_ns - bare_ns * last.count;
    printf("%.0f %.6f %d\n", first.cpu_ns - bare_ns * first.count + last_ns, last_ns / last.wall_ns,
           sim_callbacks());
    exit(0);
}

static void long_list(void)
{
    static char inputs[8000];
    int at = snprintf(inputs, sizeof inputs, "(");
    for (int i = 0; i < 600; i++)
        at += snprintf(inputs + at, sizeof inputs - (size_t)at, " T6[300,2]");
    snprintf(inputs + at, sizeof inputs - (size_t)at, " ) I1");
    for (int i = 0; i < 20; i++)
        leaf("aten::_foreach_mul_", inputs);
}

/* Lists of which each is another one, and as long as is kept. */
static void wide(void)
{
    static char inputs[16000];
    for (int i = 0; i < WIDE_INPUTS; i++) {
        int at = snprintf(inputs, sizeof inputs, "( T6[%d]", i);
        for (int k = 0; k < 900; k++)
            at += snprintf(inputs + at, sizeof inputs - (size_t)at, " T6[3,2]");
        snprintf(inputs + at, sizeof inputs - (size_t)at, " )");
        leaf("aten::_foreach_mul_", inputs);
    }
}

/* As autograd does it: on a thread of its own. */
static void *backward(void *data)
{
    struct sim_op *node =
        sim_op_begin("autograd::engine::evaluate_function: MmBackward0", SIM_BACKWARD, -1, 0, "");
    leaf("MmBackward0", "");
    sim_op_end(sim_op_begin("Optimizer.step#Fused.step", SIM_LABEL, -1, 0, ""));
    sim_op_end(node);
    return data;
}

static void train(int is_killed)
{
    pthread_t thread;
    for (int i = 0; i < 8; i++) {
        struct sim_op *batch = sim_op_begin("enumerate(DataLoader)#_SingleProcessDataLoaderIter."
                                            "__next__",
                                            SIM_LABEL, -1, 0, "");
        leaf("aten::stack", "");
        sim_op_end(batch);
        leaf("aten::mm", "T6[3,3] T6[3,3]");
        call_cuda();
        if (pthread_create(&thread, NULL, backward, NULL) || pthread_join(thread, NULL))
            exit(8);
        struct sim_op *update = sim_op_begin("Optimizer.step#SGD.step", SIM_LABEL, -1, 0, "");
        leaf("aten::add_", "T6[3]");
        if (i == 7 && is_killed)
            syscall(SYS_kill, getpid(), SIGKILL);
        sim_op_end(update);
        sim_op_end(sim_op_begin("Optimizer.zero_grad#SGD.zero_grad", SIM_LABEL, -1, 0, ""));
    }
}

static void trains(void)
{
    train(0);
}

static void is_killed_in_training(void)
{
    train(1);
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"values", values},      {"crossing", crossing},
    {"threads", threads},    {"fork", forks},
    {"exit", ends},          {"kill", is_killed},
    {"traced", traced},      {"variants", variants},
    {"labels", many_labels}, {"inputs", many_inputs},
    {"pause", pause_and_go}, {"governed", governed},
    {"list", long_list},     {"wide", wide},
    {"train", trains},       {"train-killed", is_killed_in_training},
};

int main(int argc, char **argv)
{
    const char *wanted = argc > 1 ? argv[1] : "";
    int callbacks = argc > 2 ? atoi(argv[2]) : 2;
    if (strcmp(wanted, "alone") == 0) {
        values();
        return sim_callbacks();
    }
    if (strcmp(wanted, "rate") == 0 && argc > 2)
        rate(atof(argv[2]));
    call_cuda();
    wait_for(callbacks);
    if (callbacks == 0) /* it would have taken them by then */
        nap_ms(50), wait_for(0);
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        if (strcmp(scenarios[i].name, wanted) == 0) {
            scenarios[i].run();
            return 0;
        }
    }
    return 2;
}
