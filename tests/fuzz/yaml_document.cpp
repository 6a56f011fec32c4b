// SPDX-License-Identifier: Apache-2.0
// Any text as a file for vfctl apply: refused, or a document whose YAML is read as the same YAML.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "service/cli/yaml.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr;
    auto const json = json_of_yaml({reinterpret_cast<char const*>(data), size});
    if (!json) return 0;
    auto const yaml = as_yaml(*json);
    if (!yaml) std::abort();
    // Not the JSON: a noncharacter of Unicode is read, but the library writes U+FFFD for it.
    auto const again = json_of_yaml(*yaml);
    if (!again || as_yaml(*again) != yaml) std::abort();
    return 0;
}
