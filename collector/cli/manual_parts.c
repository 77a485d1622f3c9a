/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/manual_parts.h"

#include <stddef.h>

const char *const manual_part_titles[PART_COUNT] = {"EXAMPLES", "ENVIRONMENT", "FILES",
                                                    "EXIT STATUS"};

#define READERS "merge report flame memory view dump"

const struct manual_row manual_rows[] = {
    {"run", PART_EXAMPLE, "gpuprof run python train.py",
     "record a program, in a new folder that is named at its end"},
    {"run", PART_EXAMPLE, "gpuprof run -o data --backtrace=launch torchrun train.py",
     "all ranks in one folder, with the stack of each launch"},
    {"run", PART_EXAMPLE, "gpuprof run --overhead-max=2% -- ./solver --steps 100",
     "record less, rather than take more than two percent of a thread's time"},
    {"merge", PART_EXAMPLE, "gpuprof merge data -o trace.json.gz",
     "one trace of all processes, for ui.perfetto.dev"},
    {"merge", PART_EXAMPLE, "gpuprof merge data --per-rank -o traces",
     "one for each rank, for HTA and TensorBoard"},
    {"report", PART_EXAMPLE, "gpuprof report data",
     "a screen on where the time went, then the tables that tell most; --full: all tables"},
    {"report", PART_EXAMPLE, "gpuprof report data --table=cuda_gpu_kern_sum --sort=max --limit=10",
     "the ten kernels of which one was the slowest"},
    {"report", PART_EXAMPLE, "gpuprof report data --by=python-line",
     "which lines of Python made the slow calls"},
    {"flame", PART_EXAMPLE, "gpuprof flame data -o flame.svg", "for a browser"},
    {"flame", PART_EXAMPLE, "gpuprof flame data --weight=gpu -o flame.json",
     "time of the GPU, for speedscope"},
    {"memory", PART_EXAMPLE, "gpuprof memory data --by=python-line",
     "which lines of Python held the memory at the peak of each device"},
    {"memory", PART_EXAMPLE, "gpuprof memory data --at=end --table=owners",
     "what nobody has released"},
    {"view", PART_EXAMPLE, "gpuprof view data", "prints an address; Ctrl-C ends it"},
    {"view", PART_EXAMPLE, "gpuprof view --port=8080 data",
     "on another machine, reached by ssh -L 8080:127.0.0.1:8080 HOST"},
    {"dump", PART_EXAMPLE, "gpuprof dump data | grep error=", "each call that failed"},
    {"doctor", PART_EXAMPLE, "gpuprof doctor python train.py",
     "what would be recorded of it on this machine; its main function does not run"},
    {"recover", PART_EXAMPLE, "gpuprof recover data",
     "for programs of your own that read the files; merge and report need no such thing"},
    {"completion", PART_EXAMPLE, "source <(gpuprof completion bash)", "without an installation"},
    {"manual", PART_EXAMPLE, "gpuprof manual | man -l -", "read this page"},
    {"manual", PART_EXAMPLE, "gpuprof manual run | man -l -", "that of a verb, gpuprof-run(1)"},
    {"manual", PART_EXAMPLE, "gpuprof manual gpuprof.h | man -l -", "that of gpuprof.h"},
    {"help", PART_EXAMPLE, "gpuprof help run", "the options of run"},
    {"demo", PART_EXAMPLE, "gpuprof demo", "without a GPU: its CUDA is a simulated one"},

    {"run doctor", PART_VARIABLE, "GPUPROF_...", "the settings, as below; an option wins"},
    {"run", PART_VARIABLE, "RANK, LOCAL_RANK, SLURM_PROCID, OMPI_COMM_WORLD_RANK, PMI_RANK ...",
     "which process of a job it is"},
    {"run", PART_VARIABLE, "LD_PRELOAD, NVTX_INJECTION64_PATH, CUDA_INJECTION64_PATH",
     "set for the program; LD_PRELOAD keeps what it names already, and so do the other two"},
    {"run doctor", PART_VARIABLE, "PATH", "where the program is looked for"},
    {"run doctor", PART_VARIABLE, "CUDA_HOME", "a toolkit, in which libcupti is looked for, too"},
    {"doctor", PART_VARIABLE,
     "LD_LIBRARY_PATH, PYTHONPATH, NVIDIA_DRIVER_CAPABILITIES, NVIDIA_VISIBLE_DEVICES",
     "looked at as the program and its container will"},
    {"merge report flame memory view", PART_VARIABLE, "DEBUGINFOD_URLS",
     "where debug files of what is not installed are fetched from"},
    {"run report memory", PART_VARIABLE, "NO_COLOR, TERM",
     "no colours if NO_COLOR is set, or if TERM is dumb"},
    {"merge report flame memory", PART_VARIABLE, "TMPDIR",
     "a folder for what does not fit into memory"},
    {"view", PART_VARIABLE, "TMPDIR", "a folder for the trace, which lies there without a name"},
    {"recover dump completion manual help demo", PART_VARIABLE, "none", ""},

    {"run", PART_FILE, "gpuprof.PROGRAM.TIME/",
     "the data folder, unless -o or GPUPROF_OUT names one"},
    {"run", PART_FILE, "/dev/shm/gpuprof-ID.live",
     "a process's events that are not yet stored, while it runs; --live names another folder"},
    {READERS " recover", PART_FILE, "DIR/*.gpuprof",
     "a recording each, specified in event-stream.md"},
    {"merge report flame view recover", PART_FILE, "DIR/*.live",
     "the last events of a killed process; moved there from /dev/shm, unless --keep-live"},
    {"doctor", PART_FILE, "/proc, /dev/shm, site-packages/torch/version.py",
     "looked at; nothing is written"},
    {"demo", PART_FILE, "gpuprof.demo.TIME/", "the data folder, with trace.json in it"},
    {"completion manual help", PART_FILE, "none", ""},

    {"run", PART_STATUS, "the program's own",
     "a signal that ended the program ends gpuprof, too; 2 if no program was started"},
    {READERS " recover", PART_STATUS, "0", "everything that was recorded was read"},
    {"completion manual help", PART_STATUS, "0", "it was printed"},
    {"doctor", PART_STATUS, "0", "nothing is broken"},
    {"demo", PART_STATUS, "0", "it was recorded and reported"},
    {READERS " recover doctor completion manual help demo", PART_STATUS, "1",
     "input or output failed"},
    {READERS " recover doctor completion manual help demo", PART_STATUS, "2",
     "a wrong option, or nothing to read"},
    {READERS " recover", PART_STATUS, "3",
     "something is damaged, or, with --strict, anything at all was lost"},
    {"doctor", PART_STATUS, "4",
     "something is broken: nothing, or nothing that matters, would be "
     "recorded"},
    {NULL, PART_COUNT, NULL, NULL},
};

const struct manual_function manual_functions[] = {
    {"int gpuprof_range_push(const char *text);",
     "A range begins on the calling thread. Returns its level among the open ones, from 0 on; -2 "
     "without gpuprof."},
    {"int gpuprof_range_pop(void);",
     "The innermost range of the thread ends. Returns its level; -1 if none is open, -2 without "
     "gpuprof."},
    {"void gpuprof_mark(const char *text);", "Marks a moment."},
    {"void gpuprof_step(uint64_t number);",
     "An iteration begins, and lasts until the next one. The number is the program's own, so that "
     "it means the same after a restart and on all ranks."},
    {"void gpuprof_stop(void);",
     "From here on no CUDA call is recorded, in any thread, except allocations and frees, and "
     "what begins and ends stream captures. A call that is open is recorded to its end."},
    {"void gpuprof_start(void);",
     "CUDA calls are recorded again from here on; for the first time in a program that gpuprof run "
     "--start-paused started."},
    {NULL, NULL},
};
