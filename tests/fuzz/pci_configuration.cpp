// SPDX-License-Identifier: Apache-2.0
// Any bytes as a function's configuration space: a table of MSI-X vectors has 1 to 2,048.
#include <cstdlib>

#include "vfmgr/kernel/vf_files.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string_view const bytes(reinterpret_cast<char const*>(data), size);
    auto const vectors = vfmgr::msix_vectors_in(bytes);
    if (vectors && (*vectors < 1 || *vectors > 2048)) std::abort();
    return 0;
}
