// SPDX-License-Identifier: Apache-2.0
// A C++ program whose frames test_symbols.py knows.
#include "frames.h"

namespace shapes {
template <typename T, int N> struct box {
    __attribute__((noinline)) T fill(T value)
    {
        here("template"); // line 9
        return value + N;
    }
};
} // namespace shapes

int main()
{
    auto lambda = [](int value) __attribute__((noinline)) {
        here("lambda"); // line 18
        return value;
    };
    shapes::box<int, 3> box;
    return box.fill(lambda(0)) - 3;
}
