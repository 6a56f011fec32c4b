// SPDX-License-Identifier: Apache-2.0
// Any text as mstconfig's output: a parameter has a name and a value for every column that the
// header promises, and a pending parameter has two different values.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "vfmgr/machine/firmware.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr::checks;
    auto const require = [](bool promise) {
        if (!promise) std::abort();
    };
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    auto const configuration = parse_firmware_configuration(text);
    for (auto const& parameter : configuration.parameters) {
        require(!parameter.name.empty() && text.find(parameter.name) != text.npos);
        require(parameter.by_default || parameter.current || parameter.next);
        require(!parameter.current || configuration.shows_current);
        require(configuration.find(parameter.name) != nullptr);
        for (auto const& value : {parameter.by_default, parameter.current, parameter.next})
            if (value) require(value->same_as(*value));
        if (parameter.pending()) require(!parameter.current->same_as(*parameter.next));
    }
    return 0;
}
