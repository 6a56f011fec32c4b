// SPDX-License-Identifier: Apache-2.0
// Owners that free what they hold, with a C library's own function or any other. Any thread.
#pragma once

#include <memory>
#include <utility>

namespace vfmgr {

// Frees an object of a C library by the library's own function.
template <auto Free>
struct Freed {
    template <class T>
    void operator()(T* object) const noexcept {
        static_cast<void>(Free(object));
    }
};
template <class T, auto Free>
using Handle = std::unique_ptr<T, Freed<Free>>;

// Stands for something that is held: a claim, a place, a file. held() takes the function that ends
// it, which runs once: when the last copy is destroyed, or at once if memory runs out. The pointer
// is null: never test it.
using Held = std::shared_ptr<void const>;
template <class Work>
[[nodiscard]] Held held(Work at_end) {
    return Held(nullptr, [at_end = std::move(at_end)](void const*) { at_end(); });
}

}  // namespace vfmgr
