// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/schedule/taken.hpp"

#include <algorithm>

namespace vfmgr::fleet {

void Taken::sum_up(std::string const& host) {
    TakenOfHost sum;
    for (auto const& [id, decision] : decisions_) {
        if (decision.host != host) continue;
        for (auto const& [pf, vfs] : decision.vfs) {
            sum.vfs += vfs;
            sum.of_pfs[pf] = static_cast<std::uint16_t>(sum.of_pfs[pf] + vfs);
            if (!decision.network.empty()) sum.addresses[decision.network] += vfs;
        }
        sum.gpus.insert(decision.gpus.begin(), decision.gpus.end());
    }
    if (sum.vfs == 0 && sum.gpus.empty())
        hosts_.erase(host);
    else
        hosts_.insert_or_assign(host, std::move(sum));
}

void Taken::add(std::string const& id, Decision decision) {
    forget(id);
    auto const host = decision.host;
    decisions_.insert_or_assign(id, std::move(decision));
    sum_up(host);
}

void Taken::forget(std::string const& id) {
    auto const found = decisions_.extract(id);
    if (found) sum_up(found.mapped().host);
}

TakenOfHost const* Taken::of(std::string_view host) const {
    auto const found = hosts_.find(host);
    return found == hosts_.end() ? nullptr : &found->second;
}

std::optional<std::string> Taken::rack_of_group(std::string_view group) const {
    if (group.empty()) return std::nullopt;
    auto const found = std::ranges::find_if(
        decisions_, [&](auto const& each) { return each.second.group == group; });
    if (found == decisions_.end()) return std::nullopt;
    return found->second.rack;
}

}  // namespace vfmgr::fleet
