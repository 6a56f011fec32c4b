// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/schedule/schedule.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace vfmgr::fleet {
namespace {

// How much of a rack is used, with what was decided meanwhile.
struct RackUse {
    std::uint64_t vfs = 0;
    std::uint64_t used = 0;
    [[nodiscard]] std::uint64_t permille() const { return vfs == 0 ? 0 : used * 1000 / vfs; }
};
using RackUses = std::unordered_map<std::string_view, RackUse>;

RackUses rack_uses(std::span<HostSummary const* const> hosts, Taken const& taken) {
    RackUses racks;
    for (auto const* const host : hosts) {
        auto& rack = racks[host->rack];
        rack.vfs += host->vfs;
        rack.used += host->used;
        if (auto const* const more = taken.of(host->name)) rack.used += more->vfs;
    }
    return racks;
}

// Less is better.
struct Score {
    Distances distances{};
    std::int64_t first = 0;
    std::uint64_t second = 0;
    std::string_view host;
    auto operator<=>(Score const&) const = default;
};

Score score(Ranked const& ranked, HostStrategy strategy, RackUses const& racks) {
    auto const& fit = *ranked.fit;
    Score score{fit.distances, std::int64_t{fit.left}, fit.gpus_left, ranked.host};
    if (strategy == HostStrategy::pack) return score;
    score.first = -score.first;
    score.second = racks.at(ranked.rack).permille();
    return score;
}

std::string said_for(Ranked const& ranked, PlacementRequest const& request, RackUses const& racks) {
    auto const& fit = *ranked.fit;
    auto text =
        fmt::format("has {} free VF{} of {} on {} rail{}", fit.free, fit.free == 1 ? "" : "s",
                    requested_from(request.spec), fit.rails, fit.rails == 1 ? "" : "s");
    if (!fit.gpus.empty()) {
        auto const worst = std::ranges::min_element(fit.gpus, {}, &GpuShare::distance)->distance;
        text +=
            fmt::format("; {} within {}",
                        fit.gpus.size() == 1 ? "a GPU has its VF"
                                             : fmt::format("{} GPUs have theirs", fit.gpus.size()),
                        enum_name(worst));
    }
    text += fmt::format("; {} VF{} of the host would be left", fit.left, fit.left == 1 ? "" : "s");
    if (request.spec.strategy == HostStrategy::spread && !ranked.rack.empty())
        text += fmt::format("; {} % of rack {} is used", racks.at(ranked.rack).permille() / 10,
                            ranked.rack);
    return text;
}

void add_unknown(std::vector<Ranked>& ranked, std::span<HostSummary const* const> hosts,
                 FleetReservationSpec const& spec) {
    for (auto const& name : spec.hosts)
        if (std::ranges::find(hosts, name, [](auto const* host) { return host->name; }) ==
            hosts.end())
            ranked.push_back({name, "", "is no host of this fleet"});
}

}  // namespace

std::string rail_of(std::map<std::string, std::string> const& labels,
                    std::vector<Network> const& networks, PciAddress const& pf) {
    if (auto const label = labels.find("rail"); label != labels.end()) return label->second;
    Network const* first = nullptr;
    for (auto const& network : networks)
        if (host_address_on(network, pf) && (!first || network.name < first->name))
            first = &network;
    if (!first) return to_string(pf);
    auto const place = std::ranges::find(first->pfs, pf, &NetworkPf::pf);
    return fmt::format("{}/{}", first->name, place - first->pfs.begin());
}

std::vector<Ranked> schedule(std::span<HostSummary const* const> hosts,
                             PlacementRequest const& request, Taken const& taken) {
    std::vector<Ranked> ranked;
    ranked.reserve(hosts.size());
    for (auto const* const host : hosts) {
        Ranked one{host->name, host->rack, {}};
        auto verdict = suits(*host, request, taken);
        if (auto* const fit = std::get_if<Suits>(&verdict))
            one.fit = std::move(*fit);
        else
            one.reason = std::move(std::get<DoesNotSuit>(verdict).reason);
        ranked.push_back(std::move(one));
    }
    add_unknown(ranked, hosts, request.spec);
    auto const racks = rack_uses(hosts, taken);
    auto const suit =
        std::ranges::partition(ranked, [](auto const& one) { return one.fit.has_value(); });
    auto const strategy = request.spec.strategy;
    std::sort(ranked.begin(), suit.begin(), [&](auto const& one, auto const& other) {
        return score(one, strategy, racks) < score(other, strategy, racks);
    });
    std::ranges::sort(suit, {}, &Ranked::host);
    for (auto& one : ranked)
        if (one.fit) one.reason = said_for(one, request, racks);
    return ranked;
}

Result<Ranked> chosen(std::vector<Ranked> const& ranked, FleetReservationSpec const& spec) {
    if (!ranked.empty() && ranked.front().fit) return ranked.front();
    constexpr std::size_t named_max = 8;
    std::vector<std::string> reasons;
    for (auto const& one : ranked) {
        if (reasons.size() == named_max) break;
        reasons.push_back(one.host + " " + one.reason);
    }
    auto detail = fmt::format("none of {} hosts suits a request for {} VF{} of {}", ranked.size(),
                              spec.count, spec.count == 1 ? "" : "s", requested_from(spec));
    auto const discreet = detail;
    if (!reasons.empty()) detail += fmt::format(": {}", fmt::join(reasons, "; "));
    if (ranked.size() > reasons.size())
        detail += fmt::format("; and {} more", ranked.size() - reasons.size());
    auto const remedy = "request fewer VFs or ask less of the host, or wait until VFs are detached";
    return fail(discreetly({Problem::limit_exceeded, std::move(detail), remedy}, discreet, remedy));
}

Decision decision_of(Ranked const& chosen, FleetReservationSpec const& spec) {
    Decision decision{
        chosen.host, chosen.rack, spec.network.value_or(""), spec.same_rack.value_or(""), {}, {}};
    if (!chosen.fit) return decision;
    decision.vfs = chosen.fit->vfs;
    decision.gpus = chosen.fit->held;
    return decision;
}

std::vector<HostCandidate> candidates_of(std::vector<Ranked> const& ranked) {
    std::vector<HostCandidate> candidates;
    candidates.reserve(ranked.size());
    for (auto const& one : ranked)
        candidates.push_back({one.host, candidates.empty() && one.fit, one.reason});
    return candidates;
}

}  // namespace vfmgr::fleet
