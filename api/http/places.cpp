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

Result<std::optional<std::uint64_t>> Strangers::find_place(std::string const& address, AddressIs is,
                                                           Limits const& limits) const {
    auto const& half = halves_.at(is);
    auto const own = half.of.find(address);
    if (is == AddressIs::unknown && own != half.of.end() &&
        own->second.size() >= limits.strangers_per_peer_max)
        return *own->second.begin();
    if (half.size < limits.connections_max / 2) return std::nullopt;
    Numbers const* goes = nullptr;  // the oldest of these
    for (auto const& [from, numbers] : half.of) {
        bool const more = !goes || numbers.size() > goes->size();
        if (more || (numbers.size() == goes->size() && *numbers.begin() < *goes->begin()))
            goes = &numbers;
    }
    if (goes) return *goes->begin();
    return fail(no_place("this socket has no connections for unauthenticated peers"));
}

void Strangers::add(std::string const& address, AddressIs is, std::uint64_t number) {
    auto& half = halves_.at(is);
    half.of[address].insert(number);
    ++half.size;
    all_.emplace(number, Stranger{is, address});
}

void Strangers::remove(std::uint64_t number) {
    auto const found = all_.find(number);
    if (found == all_.end()) return;
    auto& half = halves_.at(found->second.is);
    auto const own = half.of.find(found->second.address);
    own->second.erase(number);
    if (own->second.empty()) half.of.erase(own);
    --half.size;
    all_.erase(found);
}

}  // namespace vfmgr::http
