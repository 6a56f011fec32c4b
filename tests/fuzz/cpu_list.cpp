// SPDX-License-Identifier: Apache-2.0
// Any bytes as a list of CPUs: an accepted list contains the CPU that it begins with.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "vfmgr/proof/latency.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    std::string const text(reinterpret_cast<char const*>(data), size);
    auto const cpus = vfmgr::verify::parse_cpu_list(text);
    if (!cpus) return 0;
    auto const first = std::strtoul(text.c_str(), nullptr, 10);
    if (first >= CPU_SETSIZE || !CPU_ISSET(first, &*cpus)) std::abort();
    return 0;
}
