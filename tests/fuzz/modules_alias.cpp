// SPDX-License-Identifier: Apache-2.0
// Any bytes as a device's modalias, up to the first line end, and as a modules.alias after it: the
// module named occurs in the file.
#include <cstdint>
#include <cstdlib>

#include "vfmgr/kernel/vfio_variant.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const bytes(reinterpret_cast<char const*>(data), size);
    auto const modalias = bytes.substr(0, bytes.find('\n'));
    auto const aliases = bytes.substr(modalias.size());
    auto const module = vfmgr::best_vfio_module(aliases, modalias);
    if (module && (module->empty() || aliases.find(' ' + *module) == aliases.npos)) std::abort();
    return 0;
}
