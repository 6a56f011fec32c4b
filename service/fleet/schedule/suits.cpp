// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/schedule/suits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace vfmgr::fleet {
namespace {

using Refused = std::optional<std::string>;

std::string since(HostSummary const& host) {
    auto text = host.state_since ? " since " + to_rfc3339(*host.state_since) : std::string();
    if (!host.state_reason.empty()) text += ": " + host.state_reason;
    return text;
}

std::string plural(std::uint64_t number, std::string_view what) {
    return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

// What the request excludes by itself.
Refused excluded(HostSummary const& host, PlacementRequest const& request) {
    auto const& spec = request.spec;
    auto const listed = [](std::vector<std::string> const& all, std::string const& one) {
        return all.empty() || std::ranges::find(all, one) != all.end();
    };
    if (!listed(spec.hosts, host.name)) return "is not among the hosts that the request names";
    auto const rack = host.rack.empty() ? "is in no rack" : "is in rack " + host.rack;
    if (!listed(spec.racks, host.rack)) return rack;
    for (auto const& [key, value] : spec.labels) {
        auto const has = host.labels.find(key);
        if (has == host.labels.end()) return fmt::format("has no label {}", key);
        if (has->second != value) return fmt::format("has label {}={}", key, has->second);
    }
    if (!spec.same_rack) return std::nullopt;
    if (host.rack.empty()) return rack + ", so it can't be in one with its group";
    if (request.group_rack && *request.group_rack != host.rack)
        return fmt::format("{}, and group {} is in rack {}", rack, *spec.same_rack,
                           *request.group_rack);
    return std::nullopt;
}

Refused unfit_state(HostSummary const& host) {
    switch (host.state) {
        case HostState::cordoned:
            return "is cordoned" + since(host);
        case HostState::quarantined:
            return "is quarantined" + since(host);
        case HostState::fenced:
            return "is fenced" + since(host);
        case HostState::unreachable:
            break;
        case HostState::active:
            if (!host.stale) return std::nullopt;
    }
    return fmt::format("is not heard from since {}: its VFs may be taken", to_rfc3339(host.as_of));
}

// What is free of a host for the request.
struct Offer {
    std::vector<Slot> slots;
    std::vector<std::vector<std::uint16_t>> free;  // of each PF of each slot
    std::vector<std::string_view> rails;           // of the slots: of each once
    std::uint32_t vfs = 0;                         // of all slots
    std::uint32_t without_link = 0;                // that would be free if their PF had a link
    std::uint32_t without_macs = 0;                // if there were enough MACs
    std::uint32_t without_guids = 0;
};

std::uint16_t free_of(RailPf const& pf, FleetReservationSpec const& spec,
                      TakenOfHost const* taken) {
    if (spec.network && std::ranges::find(pf.networks, *spec.network) == pf.networks.end())
        return 0;
    auto free = pf.free_vfs;
    if (spec.pool) {
        auto const part = std::ranges::find(pf.pools, *spec.pool, &PoolPart::pool);
        if (part == pf.pools.end()) return 0;
        free = std::min(free, part->free_vfs);
    }
    if (!taken) return free;
    auto const gone = taken->of_pfs.find(pf.place.address);
    if (gone == taken->of_pfs.end()) return free;
    return static_cast<std::uint16_t>(free - std::min(free, gone->second));
}

// VFs of one link layer that a decision took, which its host's figures still count.
std::uint64_t left_of(std::optional<std::uint64_t> const& left, HostSummary const& host,
                      LinkLayer layer, TakenOfHost const* taken) {
    if (!left) return UINT64_MAX;
    if (!taken) return *left;
    std::uint64_t gone = 0;
    for (auto const& pf : host.rails)
        if (auto const has = taken->of_pfs.find(pf.place.address);
            pf.link_layer == layer && has != taken->of_pfs.end())
            gone += has->second;
    return *left - std::min(*left, gone);
}

// Of PFs of one rail the one with the most free VFs comes first.
void add_to_slot(Offer& offer, std::size_t at, RailPf const& pf, std::uint16_t free) {
    auto& slot = offer.slots[at];
    auto& vfs = offer.free[at];
    auto const place = std::ranges::find_if(vfs, [&](auto other) { return other < free; });
    slot.pfs.insert(slot.pfs.begin() + (place - vfs.begin()), &pf.place);
    vfs.insert(place, free);
}

Offer offer_of(HostSummary const& host, FleetReservationSpec const& spec,
               TakenOfHost const* taken) {
    Offer offer;
    offer.slots.reserve(host.rails.size());
    offer.free.reserve(host.rails.size());
    auto const macs = left_of(host.left.macs, host, LinkLayer::ethernet, taken);
    auto const guids = left_of(host.left.guids, host, LinkLayer::infiniband, taken);
    for (auto const& pf : host.rails) {
        auto const free = free_of(pf, spec, taken);
        if (free == 0) continue;
        bool const ethernet = pf.link_layer == LinkLayer::ethernet;
        auto* const lacking = !pf.link_up                       ? &offer.without_link
                              : ethernet && macs < spec.count   ? &offer.without_macs
                              : !ethernet && guids < spec.count ? &offer.without_guids
                                                                : nullptr;
        if (lacking) {
            *lacking += free;
            continue;
        }
        // A host has few rails: looking through them takes less than any map.
        auto const rail = std::ranges::find(offer.rails, pf.rail);
        auto const known = static_cast<std::size_t>(rail - offer.rails.begin());
        if (rail == offer.rails.end()) offer.rails.push_back(pf.rail);
        auto const at = spec.one_per_rail ? known : offer.slots.size();
        if (at == offer.slots.size()) {
            offer.slots.emplace_back();
            offer.free.emplace_back();
        }
        add_to_slot(offer, at, pf, free);
        offer.slots[at].vfs = spec.one_per_rail ? 1 : std::min(free, spec.count);
        offer.vfs += free;
    }
    return offer;
}

Refused too_few_vfs(HostSummary const& host, Offer const& offer, FleetReservationSpec const& spec,
                    TakenOfHost const* taken) {
    std::uint32_t can = 0;
    for (auto const& slot : offer.slots) can += slot.vfs;
    if (can >= spec.count) return std::nullopt;
    auto const identities = [&](std::optional<std::uint64_t> const& left, LinkLayer layer,
                                char const* what) {
        return fmt::format("has {} {}s left, {} are needed", left_of(left, host, layer, taken),
                           what, spec.count);
    };
    if (offer.without_macs > 0) return identities(host.left.macs, LinkLayer::ethernet, "MAC");
    if (offer.without_guids > 0) return identities(host.left.guids, LinkLayer::infiniband, "GUID");
    auto text = fmt::format("has {} of {}", plural(offer.vfs, "free VF"), requested_from(spec));
    if (spec.one_per_rail) text += " on " + plural(offer.slots.size(), "rail");
    text += fmt::format(", {} {} needed", spec.count, spec.count == 1 ? "is" : "are");
    if (spec.one_per_rail) text += fmt::format(" on {}", spec.count);
    if (offer.without_link > 0)
        text += fmt::format("; {} more are of PFs without a link", offer.without_link);
    return text;
}

Refused too_few_addresses(HostSummary const& host, FleetReservationSpec const& spec,
                          TakenOfHost const* taken) {
    if (!spec.network) return std::nullopt;
    auto const found = host.left.addresses.find(*spec.network);
    if (found == host.left.addresses.end()) return std::nullopt;
    std::uint64_t gone = 0;
    if (taken)
        if (auto const has = taken->addresses.find(*spec.network); has != taken->addresses.end())
            gone = has->second;
    auto const left = found->second - std::min(found->second, gone);
    if (left >= spec.count) return std::nullopt;
    return fmt::format("has {} addresses of network {} left, {} are needed", left, *spec.network,
                       spec.count);
}

// The free GPUs that a request can be near to, or why there are none.
struct FreeGpus {
    std::vector<PciPlace const*> places;
    std::size_t of_host = 0;  // in its partition or not
};

std::variant<FreeGpus, DoesNotSuit> free_gpus(HostSummary const& host,
                                              FleetReservationSpec const& spec,
                                              TakenOfHost const* taken) {
    std::vector<PciAddress> const* partition = nullptr;
    if (spec.partition) {
        auto const found = host.partitions.find(*spec.partition);
        if (found == host.partitions.end())
            return DoesNotSuit{fmt::format("has no NVSwitch partition {}", *spec.partition)};
        partition = &found->second;
    }
    FreeGpus gpus;
    std::size_t of_partition = 0;
    for (auto const& gpu : host.gpus) {
        auto const& address = gpu.place.address;
        bool const inside =
            !partition || std::ranges::find(*partition, address) != partition->end();
        bool const free = gpu.free && !(taken && taken->gpus.contains(address));
        if (partition && inside) ++of_partition;
        if (partition && inside && !free)
            return DoesNotSuit{fmt::format("GPU {} of NVSwitch partition {} is in use",
                                           to_string(address), *spec.partition)};
        if (free) ++gpus.of_host;
        if (free && inside) gpus.places.push_back(&gpu.place);
    }
    if (partition && of_partition < partition->size())
        return DoesNotSuit{fmt::format("lacks {} of the {} GPUs of NVSwitch partition {}",
                                       partition->size() - of_partition, partition->size(),
                                       *spec.partition)};
    return gpus;
}

Refused too_few_pairs(NearRails const& near, FreeGpus const& gpus,
                      FleetReservationSpec const& spec) {
    std::size_t const needed = spec.gpus.value_or(spec.count);
    if (gpus.places.size() < needed)
        return fmt::format("has {}{}, {} {} needed", plural(gpus.places.size(), "free GPU"),
                           spec.partition ? " in NVSwitch partition " + *spec.partition : "",
                           needed, needed == 1 ? "is" : "are");
    if (near.pairs.size() >= needed) return std::nullopt;
    auto const within = enum_name(spec.within.value_or(near_enough));
    if (near.without && gpus.places.size() == needed)
        return fmt::format("GPU {} has no free VF within {}",
                           to_string(gpus.places[*near.without]->address), within);
    return fmt::format("{} of {} can get a VF of their own within {}, {} {} needed",
                       near.pairs.size(), plural(gpus.places.size(), "free GPU"), within, needed,
                       needed == 1 ? "is" : "are");
}

// Adds the VFs that no GPU decides: of the slot that gives the fewest so far, then of the one that
// has the most left.
void fill_up(std::map<PciAddress, std::uint16_t>& shares, std::vector<std::uint16_t> used,
             Offer const& offer, std::size_t missing) {
    for (; missing > 0; --missing) {
        auto best = offer.slots.size();
        auto const left = [&](std::size_t at) { return offer.slots[at].vfs - used[at]; };
        for (std::size_t at = 0; at < offer.slots.size(); ++at)
            if (left(at) > 0 &&
                (best == offer.slots.size() || used[at] < used[best] ||
                 (used[at] == used[best] && offer.free[at][0] > offer.free[best][0])))
                best = at;
        ++used[best];
        ++shares[offer.slots[best].pfs[0]->address];
    }
}

void take_shares(Suits& fit, Offer const& offer, NearRails const& near, FreeGpus const& gpus,
                 FleetReservationSpec const& spec) {
    std::vector<std::uint16_t> used(offer.slots.size());
    std::map<PciAddress, std::uint16_t> shares;
    for (auto const& pair : near.pairs) {
        auto const& pf = offer.slots[pair.slot].pfs[pair.pf]->address;
        fit.gpus.push_back({gpus.places[pair.gpu]->address, pf, pair.distance});
        ++used[pair.slot];
        ++shares[pf];
    }
    fill_up(shares, std::move(used), offer, spec.count - near.pairs.size());
    for (auto const& [pf, vfs] : shares) fit.vfs.push_back({pf, vfs});
    if (spec.partition)
        for (auto const* const gpu : gpus.places) fit.held.push_back(gpu->address);
    else
        for (auto const& share : fit.gpus) fit.held.push_back(share.gpu);
}

}  // namespace

std::string requested_from(FleetReservationSpec const& spec) {
    auto text = spec.pool ? "pool " + *spec.pool : std::string();
    if (spec.network) text += (text.empty() ? "network " : " and network ") + *spec.network;
    return text;
}

std::variant<Suits, DoesNotSuit> suits(HostSummary const& host, PlacementRequest const& request,
                                       Taken const& taken) {
    auto const& spec = request.spec;
    if (auto why = excluded(host, request)) return DoesNotSuit{std::move(*why)};
    if (auto why = unfit_state(host)) return DoesNotSuit{std::move(*why)};
    auto const* const gone = taken.of(host.name);
    auto found = free_gpus(host, spec, gone);
    if (auto* const why = std::get_if<DoesNotSuit>(&found)) return std::move(*why);
    auto const& gpus = std::get<FreeGpus>(found);
    auto const offer = offer_of(host, spec, gone);
    if (auto why = too_few_vfs(host, offer, spec, gone)) return DoesNotSuit{std::move(*why)};
    if (auto why = too_few_addresses(host, spec, gone)) return DoesNotSuit{std::move(*why)};
    Suits fit;
    NearRails near;
    if (spec.near) {
        near = near_rails(gpus.places, offer.slots, spec.within.value_or(near_enough),
                          spec.gpus.value_or(spec.count));
        if (auto why = too_few_pairs(near, gpus, spec)) return DoesNotSuit{std::move(*why)};
    }
    take_shares(fit, offer, near, gpus, spec);
    fit.distances = distances_of(near);
    fit.free = offer.vfs;
    fit.rails = offer.rails.size();
    auto const free = host.vfs - std::min(host.vfs, host.used + (gone ? gone->vfs : 0));
    fit.left = free - std::min<std::uint32_t>(free, spec.count);
    fit.gpus_left = gpus.of_host - fit.held.size();
    return fit;
}

}  // namespace vfmgr::fleet
