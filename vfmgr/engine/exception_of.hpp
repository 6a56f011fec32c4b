// SPDX-License-Identifier: Apache-2.0
// Where a thread of the daemon serves many: what one throws must not end it for all.
#pragma once

#include <exception>
#include <optional>
#include <string>

namespace vfmgr {

// What `work` has thrown; nothing when it returned.
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
