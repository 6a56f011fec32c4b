// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/quirks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vfmgr::quirks {
namespace {

bool fits(Quirk const& quirk, unsigned of, int error) {
    return !quirk.remedy.empty() && (quirk.of & of) != 0 &&
           (quirk.error == any_error || quirk.error == error);
}

bool is_where(Quirk const& quirk, Refused const& refused) {
    if (quirk.where == Where::switchdev && refused.eswitch_mode != EswitchMode::switchdev)
        return false;
    return quirk.where != Where::infiniband || refused.link_layer == LinkLayer::infiniband;
}

// The remedy where no driver is known to refuse the attribute.
std::string_view usual_remedy(int error) {
    return error == EOPNOTSUPP
               ? "this driver does not support it: leave {0} out, or list it in best_effort"
               : "choose another value, leave {0} out, or list it in best_effort";
}

}  // namespace

std::string remedy_for(Refused const& refused) {
    auto const* const row = std::ranges::find_if(table, [&](Quirk const& each) {
        return fits(each, bit(refused.attribute), refused.error) && is_where(each, refused);
    });
    auto const remedy = row == table.end() ? usual_remedy(refused.error) : row->remedy;
    return fmt::format(fmt::runtime(remedy), enum_name(refused.attribute), refused.pf);
}

std::optional<std::string> remedy_for_count(int error) {
    auto const* const row =
        std::ranges::find_if(table, [&](Quirk const& each) { return fits(each, num_vfs, error); });
    return row == table.end() ? std::nullopt : std::optional(std::string(row->remedy));
}

}  // namespace vfmgr::quirks
