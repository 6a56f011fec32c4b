// SPDX-License-Identifier: Apache-2.0
// Contains exceptions on threads that serve many clients: one client's exception must not end the
// thread for all.
#pragma once

#include <exception>
#include <optional>
#include <string>

namespace vfmgr {

// Runs `work`. Returns what it threw, or nothing.
template <class Work>
[[nodiscard]] std::optional<std::string> exception_of(Work&& work) {
    try {
        work();
    } catch (std::exception const& bug) {
        return bug.what();
    } catch (...) {
        return "an exception of a type that tells nothing";
    }
    return std::nullopt;
}

}  // namespace vfmgr
