// SPDX-License-Identifier: Apache-2.0
// Any bytes as a libvirt network's XML: no crash, and every refusal is explained.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "vfmgr/hypervisor/domain_xml.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    auto const pool = vfmgr::hostdev_pool_name({reinterpret_cast<char const*>(data), size});
    if (!pool && (pool.error().detail.empty() || pool.error().remedy.empty())) std::abort();
    return 0;
}
