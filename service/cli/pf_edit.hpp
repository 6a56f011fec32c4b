// SPDX-License-Identifier: Apache-2.0
// Edits a PF's spec for `vfctl pf set` and `vfctl vf set`: only what is named changes. Pure, any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "api/types/pf.hpp"
#include "service/cli/attach_spec.hpp"

namespace vfmgr {

struct PfEdit {
    std::optional<std::uint16_t> num_vfs;
    std::optional<PfMode> mode;
    std::optional<std::string> vf_driver{};  // "none": no driver is requested any more
    std::optional<std::map<std::string, std::string>> labels{};  // replace all
};

[[nodiscard]] PfSpec edit(PfSpec spec, PfEdit const& desired);
// Edits the settings that a VF has while no VM has it.
[[nodiscard]] PfSpec edit(PfSpec spec, std::uint16_t vf, NamedSettings const& settings);

}  // namespace vfmgr
