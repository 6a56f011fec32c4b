// SPDX-License-Identifier: Apache-2.0
// Aborts when a promise of a fuzz target does not hold: libFuzzer keeps the input that broke it.
#pragma once

#include <cstdlib>

inline void require(bool promise) {
    if (!promise) std::abort();
}
