// SPDX-License-Identifier: Apache-2.0
#include "api/http/places.hpp"

#include <algorithm>
#include <map>

namespace vfmgr::http {
namespace {

constexpr std::uint32_t privileged_port_end = 1024;

using Counts = std::map<std::string_view, std::size_t>;

// Finds the peer with the most places, and its oldest connection that may go.
Place const* first_to_go(std::span<Place const> taken, Counts const& counts, auto may_go) {
    Place const* found = nullptr;
    for (auto const& one : taken) {
        if (!may_go(one)) continue;
        auto const more = found ? counts.at(one.peer) > counts.at(found->peer) : true;
        auto const as_many = found && counts.at(one.peer) == counts.at(found->peer);
        if (more || (as_many && one.number < found->number)) found = &one;
    }
    return found;
}

Error no_place(std::string detail) {
    return {Problem::unavailable, std::move(detail), "close other connections, then try again"};
}

}  // namespace

Result<std::optional<std::uint64_t>> find_place(std::span<Place const> taken,
                                                std::string const& peer, Limits const& limits) {
    Counts counts;
    for (auto const& one : taken) ++counts[one.peer];
    auto const mine = counts.contains(peer) ? counts[peer] : 0;
    auto const own_idle = [&](Place const& one) { return one.idle && one.peer == peer; };
    if (mine >= limits.connections_per_peer_max) {
        if (auto const* const one = first_to_go(taken, counts, own_idle)) return one->number;
        return fail(no_place(peer + " already has all the connections that it may have"));
    }
    if (taken.size() < limits.connections_max) return std::nullopt;
    // After giving one place up, such a peer still has at least as many as the new peer then has.
    auto const of_who_has_more = [&](Place const& one) { return counts[one.peer] >= mine + 2; };
    auto const idle_of_those = [&](Place const& one) { return one.idle && of_who_has_more(one); };
    if (auto const* const one = first_to_go(taken, counts, idle_of_those)) return one->number;
    if (auto const* const one = first_to_go(taken, counts, own_idle)) return one->number;
    if (auto const* const one = first_to_go(taken, counts, of_who_has_more)) return one->number;
    return fail(no_place("all connections of this socket are taken"));
}

Result<void> check_source(SourcePort source, Peer const& peer) {
    auto const* const guest = std::get_if<VsockPeer>(&peer);
    if (source == SourcePort::any || (guest && guest->port < privileged_port_end)) return {};
    return fail(Problem::forbidden,
                "the guest plane takes vsock connections from source ports below 1024 only",
                "run vf-guest as root in the VM");
}

void KnownPeers::remember(std::string const& peer) {
    last_[peer] = ++so_far_;
    if (last_.size() <= most_) return;
    auto const number = [](auto const& one) { return one.second; };
    last_.erase(std::ranges::min_element(last_, {}, number));
}

Result<std::optional<std::uint64_t>> find_stranger_place(std::span<Stranger const> strangers,
                                                         std::string const& address,
                                                         AddressIs address_is,
                                                         Limits const& limits) {
    Counts counts;
    for (auto const& one : strangers) ++counts[one.address];
    bool const full = strangers.size() >= limits.connections_max - limits.connections_max / 4;
    bool const has_its_share = address_is == AddressIs::unknown && counts.contains(address) &&
                               counts[address] >= limits.strangers_per_peer_max;
    if (!full && !has_its_share) return std::nullopt;
    std::size_t most = 0;
    for (auto const& [one, count] : counts) most = std::max(most, count);
    Stranger const* oldest = nullptr;
    for (auto const& one : strangers) {
        bool const may_go = has_its_share ? one.address == address : counts[one.address] == most;
        if (may_go && (!oldest || one.number < oldest->number)) oldest = &one;
    }
    if (oldest) return oldest->number;
    return fail(no_place("this socket has no connections for unauthenticated peers"));
}

}  // namespace vfmgr::http
