// SPDX-License-Identifier: Apache-2.0
// Owns what a C library hands out, and frees it by the library's own function.
#pragma once

#include <memory>

namespace vfmgr {

template <auto Free>
struct Freed {
    template <class T>
    void operator()(T* object) const noexcept {
        static_cast<void>(Free(object));
    }
};
template <class T, auto Free>
using Handle = std::unique_ptr<T, Freed<Free>>;

}  // namespace vfmgr
