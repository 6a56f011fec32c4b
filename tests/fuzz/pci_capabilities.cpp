// SPDX-License-Identifier: Apache-2.0
// Any bytes as a configuration space: capabilities lie inside it, each once, and details are only
// of capabilities that it has.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>

#include "vfmgr/machine/pci_config.hpp"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr::checks;
    auto const require = [](bool promise) {
        if (!promise) std::abort();
    };
    auto const found = parse_pci_configuration({reinterpret_cast<char const*>(data), size});
    require(found.has_value() == (size >= 64));
    if (!found) return 0;
    std::set<int> places;
    for (auto const& [id, at] : found->capabilities)
        require(at >= 64 && at < 256 && places.insert(at).second);
    for (auto const& [id, at] : found->extended_capabilities)
        require(at >= 256 && at + 4U <= size && places.insert(at).second);
    require(found->answers || found->capabilities.empty());
    bool const extended = !found->extended_capabilities.empty();
    require(extended || (!found->acs && !found->ats));
    if (found->acs) require(!describe_acs(found->acs->on).empty());
    return 0;
}
