// SPDX-License-Identifier: Apache-2.0
// Under gperftools' profiler, which has SIGPROF and a timer: threads, exceptions, a child.
#include <gperftools/profiler.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

__attribute__((noinline)) static unsigned spin(unsigned n)
{
    volatile unsigned x = 1;
    for (unsigned i = 0; i < n; i++)
        x = x * 31 + i;
    return x;
}

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([] { spin(40000000); });
    unsigned caught = 0;
    for (int i = 0; i < 20000; i++)
        try {
            if (i % 2)
                throw std::runtime_error("odd");
        } catch (std::exception &) {
            caught++;
        }
    for (auto &thread : threads)
        thread.join();
    ProfilerState state;
    ProfilerGetCurrentState(&state);
    printf("%u %d %d\n", caught, state.enabled, state.samples_gathered > 5);
    printf("%d\n", system("exit 3") >> 8);
    return 9;
}
