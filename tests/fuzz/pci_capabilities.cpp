// SPDX-License-Identifier: Apache-2.0
// Any bytes as a configuration space: its lists end, and capabilities lie inside it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "vfmgr/machine/pci_config.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr::checks;
    auto const require = [](bool promise) {
        if (!promise) std::abort();
    };
    auto const found = parse_pci_configuration({reinterpret_cast<char const*>(data), size});
    require(found.has_value() == (size >= 64));
    if (!found) return 0;
    require(found->answers || (!found->pcie && !found->acs && !found->ats));
    require(size >= 256 || !found->pcie);
    require(size > 256 || (!found->acs && !found->ats));
    if (found->acs) require(!describe_acs(found->acs->on).empty());
    return 0;
}
