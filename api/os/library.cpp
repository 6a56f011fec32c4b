// SPDX-License-Identifier: Apache-2.0
#include "api/os/library.hpp"

#include <fmt/format.h>

namespace vfmgr {

Result<Library> Library::open(std::string const& name, std::string_view consequence,
                              std::string remedy) {
    if (auto* const handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return Library(handle);
    char const* const why = ::dlerror();
    return fail({Problem::not_found,
                 fmt::format("{} can't be opened{}", name, consequence),
                 std::move(remedy),
                 {{"dlopen", "", why ? why : "no reason given"}}});
}

}  // namespace vfmgr
