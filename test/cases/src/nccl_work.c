/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl_work SCENE: WORLD_SIZE ranks on the simulated NCCL, each a process of its own that this one
 * starts (RANK set: it is one of them). They get their first communicator by an id that rank 0
 * leaves in the folder MEET.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../programs/kernels.h"
#include <nccl.h>

#define KERNELS(X) X(compute, "_Z7computePf") X(forever, "_Z7foreverPf")
KERNELS_DEFINE(KERNELS)

enum { FLOATS = 1 << 16, STEPS = 5 };

static int rank, world;
static float *memory, *more;
static cudaStream_t stream;

static void must(int line, int result)
{
    if (result == 0)
        return;
    fprintf(stderr, "nccl_work.c:%d: rank %d: result %d\n", line, rank, result);
    _exit(1);
}
#define MUST(call) must(__LINE__, (int)(call))

/* The others may look before it is there, but see it whole. */
static ncclUniqueId shared_id(const char *name)
{
    char path[4096], part[4200];
    ncclUniqueId id;
    snprintf(path, sizeof path, "%s/%s", getenv("MEET"), name);
    snprintf(part, sizeof part, "%s.part", path);
    if (rank == 0) {
        MUST(ncclGetUniqueId(&id));
        FILE *file = fopen(part, "w");
        MUST(!file || fwrite(&id, sizeof id, 1, file) != 1 || fclose(file));
        MUST(rename(part, path));
        return id;
    }
    FILE *file;
    while (!(file = fopen(path, "r")))
        usleep(1000);
    MUST(fread(&id, sizeof id, 1, file) != 1);
    fclose(file);
    return id;
}

static void start(void)
{
    int devices = 0;
    MUST(cudaGetDeviceCount(&devices));
    MUST(cudaSetDevice(rank % devices));
    MUST(cudaMalloc((void **)&memory, FLOATS * sizeof *memory));
    MUST(cudaMalloc((void **)&more, FLOATS * sizeof *more));
    MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
}

static ncclComm_t world_comm(void)
{
    ncclComm_t comm;
    MUST(ncclCommInitRank(&comm, world, shared_id("world"), rank));
    return comm;
}

/* Where a rank that is to be absent stays: in no call of NCCL's, and in none of CUDA's but for
 * STAYS_IN=sync. */
static __attribute__((noinline)) void stays_away(void)
{
    const char *where = getenv("STAYS_IN");
    puts("stays");
    fflush(stdout);
    if (where && strcmp(where, "sync") == 0) {
        launch(forever, 1, 32, 0, stream);
        cudaStreamSynchronize(stream); /* never returns */
    }
    for (;;)
        pause();
}

/* The rank and the number of the collective of the whole world that SIMNCCL_ABSENT names. */
static int is_missing(uint64_t number)
{
    const char *text = getenv("SIMNCCL_ABSENT");
    int who = -1;
    unsigned long long which = 0;
    return text && sscanf(text, "%d:%llu", &who, &which) == 2 && who == rank && which == number;
}

static __attribute__((noinline)) void step(ncclComm_t comm, uint64_t *number)
{
    launch(compute, 4, 128, 0, stream);
    if (is_missing(*number))
        stays_away(); /* instead of the collective */
    MUST(ncclAllReduce(memory, memory, FLOATS, ncclFloat32, ncclSum, comm, stream));
    ++*number;
    if (is_missing(*number))
        stays_away();
    MUST(ncclAllGather(memory, more, FLOATS / (size_t)world, ncclBfloat16, comm, stream));
    ++*number;
    MUST(cudaStreamSynchronize(stream));
}

/* Steps of a training loop; the last collective is a broadcast. */
static void train(void)
{
    uint64_t number = 0;
    start();
    ncclComm_t comm = world_comm();
    for (int i = 0; i < STEPS; i++)
        step(comm, &number);
    MUST(ncclBroadcast(memory, memory, 16, ncclInt64, 0, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(ncclCommDestroy(comm));
}

/* One rank never comes to make the communicator. */
static void unmade(void)
{
    start();
    MUST(cudaMemset(memory, 0, FLOATS));
    if (rank == 1)
        stays_away();
    world_comm();
}

/* One rank has another idea of what comes. Their kernels wait for each other as ever. */
static void mismatch(void)
{
    start();
    ncclComm_t comm = world_comm();
    MUST(ncclAllReduce(memory, memory, 64, ncclFloat32, ncclSum, comm, stream));
    if (rank == 1)
        MUST(ncclAllGather(memory, more, 64, ncclFloat32, comm, stream));
    else
        MUST(ncclAllReduce(memory, memory, 64, ncclFloat32, ncclSum, comm, stream));
    MUST(ncclAllReduce(memory, memory, rank == 2 ? 128 : 64, ncclFloat32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
    MUST(ncclCommAbort(comm));
}

/* Nothing is recorded but the fourth collective. */
static void paused(void)
{
    void (*stop)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "gpuprof_stop");
    void (*go_on)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "gpuprof_start");
    start();
    stop();
    ncclComm_t comm = world_comm();
    for (int i = 0; i < 3; i++)
        MUST(ncclAllReduce(memory, memory, 64, ncclFloat32, ncclSum, comm, stream));
    go_on();
    MUST(ncclAllReduce(memory, memory, 64, ncclFloat32, ncclSum, comm, stream));
    MUST(cudaStreamSynchronize(stream));
}

static void wait_for(ncclComm_t comm)
{
    ncclResult_t state;
    do {
        usleep(500);
        MUST(ncclCommGetAsyncError(comm, &state));
    } while (state == ncclInProgress);
    MUST(state);
}

/* Each function at least once. */
static void all(void)
{
    ncclConfig_t patient = NCCL_CONFIG_OF(1), hasty = NCCL_CONFIG_OF(0);
    ncclSimInfo_t info = NCCL_SIM_INFO;
    ncclUniqueId id;
    ncclComm_t comm, config, scalable, half, rest;
    int number, next = (rank + 1) % world, last = (rank + world - 1) % world;
    start();
    comm = world_comm();
    id = shared_id("config");
    ncclResult_t result = ncclCommInitRankConfig(&config, world, id, rank, &hasty);
    MUST(result != ncclInProgress);
    ncclCommCount(config, &number); /* in progress, or it has it already */
    wait_for(config);
    id = shared_id("scalable");
    MUST(ncclCommInitRankScalable(&scalable, world, rank, 1, &id, &patient));
    MUST(ncclCommCount(comm, &number) || number != world);
    MUST(ncclCommUserRank(comm, &number) || number != rank);
    MUST(ncclCommCuDevice(comm, &number));
    MUST(ncclReduceScatter(memory, more, 32, ncclFloat16, ncclMax, comm, stream));
    MUST(ncclBcast(memory, 33, ncclUint8, 1, comm, stream));
    MUST(ncclReduce(memory, more, 34, ncclFloat64, ncclMin, 2, comm, stream));
    MUST(ncclAlltoAll(memory, more, 35, ncclInt32, comm, stream));
    MUST(ncclGather(memory, more, 36, ncclInt8, 3, comm, stream));
    MUST(ncclScatter(memory, more, 37, ncclUint32, 0, comm, stream));
    MUST(ncclGroupStart());
    MUST(ncclGroupStart());
    MUST(ncclSend(memory, 38, ncclUint64, next, comm, stream));
    MUST(ncclGroupEnd());
    MUST(ncclRecv(more, 38, ncclUint64, last, comm, stream));
    MUST(ncclAllReduce(memory, more, 39, ncclFloat8e4m3, ncclAvg, scalable, stream));
    MUST(ncclGroupEnd());
    MUST(ncclGroupStart());
    MUST(ncclGroupSimulateEnd(&info));
    result = ncclAllReduce(memory, more, 40, ncclFloat32, ncclProd, config, stream);
    MUST(result != ncclInProgress);
    wait_for(config);
    MUST(ncclCommSplit(comm, rank % 2, -rank, &half, NULL));
    MUST(ncclAllGather(memory, more, 41, ncclFloat8e5m2, half, stream));
    MUST(ncclCommSplit(comm, rank ? 0 : NCCL_SPLIT_NOCOLOR, 0, &rest, &patient));
    MUST((rank != 0) != (rest != NULL));
    if (rank) {
        MUST(ncclAllReduce(memory, more, 42, ncclInt64, ncclSum, rest, stream));
        MUST(ncclCommDestroy(rest));
        MUST(ncclCommShrink(comm, (int[]){0}, 1, &rest, NULL, NCCL_SHRINK_DEFAULT));
        MUST(ncclAllReduce(memory, more, 43, ncclInt64, ncclSum, rest, stream));
        MUST(ncclCommDestroy(rest));
    }
    MUST(ncclAllReduce(NULL, NULL, 1, (ncclDataType_t)99, ncclSum, half, stream) !=
         ncclInvalidArgument);
    MUST(cudaStreamSynchronize(stream));
    MUST(ncclCommFinalize(half));
    MUST(ncclCommDestroy(half));
    MUST(ncclCommDestroy(scalable));
    MUST(ncclCommDestroy(config));
    MUST(ncclCommAbort(comm));
}

static ncclComm_t cliques[8];

static void *clique_rank(void *data)
{
    int i = (int)(intptr_t)data;
    cudaStream_t own;
    MUST(cudaSetDevice(i));
    MUST(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking));
    for (int k = 0; k < 3; k++)
        MUST(ncclAllReduce(memory, memory, 64, ncclFloat32, ncclSum, cliques[i], own));
    MUST(cudaStreamSynchronize(own));
    return NULL;
}

/* One process is all ranks: a thread a rank, then one thread for all, in a group. */
static void clique(void)
{
    pthread_t threads[8];
    cudaStream_t streams[8];
    start();
    MUST(ncclCommInitAll(cliques, world, NULL));
    for (int i = 0; i < world; i++)
        MUST(pthread_create(&threads[i], NULL, clique_rank, (void *)(intptr_t)i));
    for (int i = 0; i < world; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < world; i++) {
        MUST(cudaSetDevice(i));
        MUST(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    }
    MUST(ncclGroupStart());
    for (int i = 0; i < world; i++)
        MUST(ncclReduceScatter(memory, more, 8, ncclFloat32, ncclSum, cliques[i], streams[i]));
    MUST(ncclGroupEnd());
    for (int i = 0; i < world; i++) {
        MUST(cudaSetDevice(i));
        MUST(cudaStreamSynchronize(streams[i]));
        MUST(ncclCommDestroy(cliques[i]));
    }
}

static ncclComm_t own_comm(void)
{
    ncclComm_t comm;
    ncclUniqueId id;
    MUST(ncclGetUniqueId(&id));
    MUST(ncclCommInitRank(&comm, 1, id, 0));
    return comm;
}

/* The recording stops in the middle of a group, and goes on in that of another. */
static void halves(void)
{
    void (*stop)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "gpuprof_stop");
    void (*go_on)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "gpuprof_start");
    start();
    ncclComm_t comm = own_comm();
    for (int i = 0; i < 2; i++) {
        MUST(ncclGroupStart());
        MUST(ncclAllReduce(memory, memory, 1, ncclInt8, ncclSum, comm, stream));
        (i == 0 ? stop : go_on)();
        MUST(ncclAllReduce(memory, memory, 2, ncclInt8, ncclSum, comm, stream));
        MUST(ncclGroupEnd());
    }
    MUST(cudaStreamSynchronize(stream));
}

static int launch_ranks(char **words)
{
    int status, worst = 0;
    for (int i = 0; i < world; i++)
        if (fork() == 0) {
            char text[16];
            snprintf(text, sizeof text, "%d", i);
            setenv("RANK", text, 1);
            execv("/proc/self/exe", words);
            _exit(127);
        }
    while (wait(&status) > 0)
        worst |= status;
    return worst != 0;
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } scenes[] = {{"train", train},   {"mismatch", mismatch}, {"all", all},      {"paused", paused},
                  {"halves", halves}, {"clique", clique},     {"unmade", unmade}};
    const char *text = getenv("WORLD_SIZE"), *own = getenv("RANK");
    world = text ? atoi(text) : 1;
    rank = own ? atoi(own) : 0;
    for (unsigned i = 0; count == 2 && i < sizeof scenes / sizeof scenes[0]; i++)
        if (strcmp(words[1], scenes[i].name) == 0) {
            if (!own && scenes[i].run != clique)
                return launch_ranks(words);
            scenes[i].run();
            return 0;
        }
    return 1;
}
