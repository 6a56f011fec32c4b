// SPDX-License-Identifier: Apache-2.0
// Edits a PF's spec for `vfctl pf set`: only what is named changes. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/pf.hpp"

namespace vfmgr {

struct PfEdit {
    std::optional<std::uint16_t> num_vfs;
    std::optional<PfMode> mode;
    std::optional<std::string> vf_driver{};  // "none": no driver is requested any more
    std::vector<std::string> networks;       // "name=lab,prefix=10.1.0.0/24,host=10.1.0.1,vlan=100"
    std::vector<std::string> networks_removed;
};

// A network of the same name keeps what `text` doesn't name; vlan=none makes it untagged, dscp=none
// makes it best effort.
[[nodiscard]] Result<Network> edit_network(PfSpec const& spec, std::string const& text);
[[nodiscard]] Result<PfSpec> edit(PfSpec spec, PfEdit const& desired);

// Parses all of `text` as a number from `low` to `high`; `what` is for the error's detail.
[[nodiscard]] Result<std::uint32_t> number(std::string const& what, std::string_view text,
                                           std::uint32_t low, std::uint32_t high);

}  // namespace vfmgr
