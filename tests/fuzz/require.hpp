// SPDX-License-Identifier: Apache-2.0
// What a fuzz target finds when a promise does not hold: libFuzzer keeps the input that broke it.
#pragma once

#include <cstdlib>

inline void require(bool promise) {
    if (!promise) std::abort();
}
