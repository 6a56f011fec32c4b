// SPDX-License-Identifier: Apache-2.0
// Any bytes as what depmod, modpost, the kernel and NVIDIA's driver write about modules and
// devices: every result occurs in the text, and nothing lies outside it.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/require.hpp"
#include "vfmgr/checks/peermem.hpp"
#include "vfmgr/machine/pci_config.hpp"
#include "vfmgr/machine/rdma_stack.hpp"

namespace {

void require_inside(std::string_view text, std::string_view part) {
    require(part.empty() ||
            (part.data() >= text.data() && part.data() + part.size() <= text.data() + text.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
    using namespace vfmgr::checks;
    std::string_view const text(reinterpret_cast<char const*>(data), size);
    if (auto const file = find_module(text, "ib_core")) {
        require_inside(text, file->path);
        require(file->path.find(".ko") != text.npos);
        for (auto const needed : file->needs) {
            require_inside(text, needed);
            require(!needed.empty() && needed.find('\n') == text.npos);
        }
    }
    if (find_symbol_version(text, "ib_x")) require(text.find("ib_x") != text.npos);
    if (auto const owner = find_kernel_symbol(text, "ib_x"))
        require(*owner == "kernel" || text.find(*owner) != text.npos);
    if (auto const ofed = parse_ofed_version(text)) {
        require(ofed->text.find('-') != text.npos && parse_ofed_version(ofed->text) == ofed);
        require(ofed->major >= 0 && ofed->major <= 999 && ofed->minor >= 0);
    }
    if (auto const driver = parse_nvidia_driver(text)) {
        require(driver->version.find_first_not_of("0123456789.") == text.npos);
        require(driver->version.starts_with(std::to_string(driver->branch)) ||
                driver->version.starts_with('0'));
    }
    for (auto const& region : parse_pci_resource(text))
        require(region.end < region.start ? region.bytes() == 0
                                          : region.bytes() == region.end - region.start + 1);
    if (number_list_has(text, 7)) require(text.find_first_of("01234567") != text.npos);
    (void)release_is_at_least(text, 5, 12);
    return 0;
}
