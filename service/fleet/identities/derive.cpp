// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/identities/derive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace vfmgr::fleet {
namespace {

template <class T>
void add_range(std::vector<Range<T>>& ranges, T const& first, T const& last, bool follows) {
    if (follows)
        ranges.back().last = last;
    else
        ranges.push_back({first, last});
}

NetworkRanges& ranges_in(Identities& all, std::string const& network) {
    if (all.addresses.empty() || all.addresses.back().network != network)
        all.addresses.push_back({network, {}});
    return all.addresses.back();
}

// Blocks in ascending order become ranges: a host takes 256 of a kind at most.
Identities merged(std::vector<Block const*> const& blocks) {
    Identities all;
    Block const* before = nullptr;
    for (auto const* const block : blocks) {
        auto const& [network, first] = block->first;
        bool const follows = before && comparable(before->last, block->first) &&
                             low_bits(before->last) + 1 == low_bits(block->first);
        if (auto const* const mac = std::get_if<MacAddress>(&first))
            add_range(all.macs, *mac, std::get<MacAddress>(block->last.value), follows);
        else if (auto const* const guid = std::get_if<Guid>(&first))
            add_range(all.guids, *guid, std::get<Guid>(block->last.value), follows);
        else
            add_range(ranges_in(all, network).ranges, std::get<IpAddress>(first),
                      std::get<IpAddress>(block->last.value), follows);
        before = block;
    }
    return all;
}

IdentityList sorted_by_kind(std::set<Identity> const& identities) {
    IdentityList all;
    for (auto const& identity : identities) {
        if (auto const* const mac = std::get_if<MacAddress>(&identity.value)) {
            all.macs.push_back(*mac);
        } else if (auto const* const guid = std::get_if<Guid>(&identity.value)) {
            all.guids.push_back(*guid);
        } else {
            all.addresses.push_back({identity.network, std::get<IpAddress>(identity.value)});
        }
    }
    return all;
}

std::set<Identity> listed(IdentityList const& all) {
    std::set<Identity> identities;
    for (auto const& mac : all.macs) identities.insert({"", mac});
    for (auto const& guid : all.guids) identities.insert({"", guid});
    for (auto const& [network, address] : all.addresses) identities.insert({network, address});
    return identities;
}

template <class T>
bool in_ranges(std::vector<Range<T>> const& ranges, T const& one) {
    return std::ranges::any_of(ranges, [&](auto const& range) { return range.contains(one); });
}

bool in_ranges(Identities const& all, Identity const& identity) {
    if (auto const* const mac = std::get_if<MacAddress>(&identity.value))
        return in_ranges(all.macs, *mac);
    if (auto const* const guid = std::get_if<Guid>(&identity.value))
        return in_ranges(all.guids, *guid);
    return std::ranges::any_of(all.addresses, [&](NetworkRanges const& of) {
        return of.network == identity.network &&
               in_ranges(of.ranges, std::get<IpAddress>(identity.value));
    });
}

// "52:54:00:00:01:00-52:54:00:00:01:7f", "10.0.0.16-10.0.0.31 of network train"
std::set<std::string> range_texts(Identities const& all) {
    std::set<std::string> texts;
    for (auto const& range : all.macs) texts.insert("MACs " + to_string(range));
    for (auto const& range : all.guids) texts.insert("GUIDs " + to_string(range));
    for (auto const& [network, ranges] : all.addresses)
        for (auto const& range : ranges)
            texts.insert(fmt::format("addresses {} of network {}", to_string(range), network));
    return texts;
}

template <class T, class Text>
void say_missing(std::vector<std::string>& sentences, std::set<T> const& all,
                 std::set<T> const& other, Text const& text) {
    for (auto const& one : all)
        if (!other.contains(one)) sentences.push_back(text(one));
}

std::vector<std::string> sentences_of(Identities const& desired, Identities const& reported) {
    std::vector<std::string> sentences;
    auto const is = [](char const* what) {
        return [what](Identity const& one) { return fmt::format("{} {}", described(one), what); };
    };
    auto const are = [](char const* what) {
        return [what](std::string const& range) { return fmt::format("{} {}", range, what); };
    };
    auto const ranges = range_texts(desired);
    auto const had_ranges = range_texts(reported);
    say_missing(sentences, ranges, had_ranges, are("are to become the host's"));
    say_missing(sentences, had_ranges, ranges, are("are no longer the host's"));
    auto const claims = listed(desired.claims);
    auto const had_claims = listed(reported.claims);
    say_missing(sentences, claims, had_claims, is("is to become the host's"));
    say_missing(sentences, had_claims, claims, is("is no longer the host's"));
    auto const given_up = listed(desired.given_up);
    auto const had_given_up = listed(reported.given_up);
    say_missing(sentences, given_up, had_given_up, is("is to be given up"));
    say_missing(sentences, had_given_up, given_up, is("is the host's again"));
    return sentences;
}

}  // namespace

Identities desired_identities(Snapshot const& fleet, std::string_view host) {
    std::vector<Block const*> blocks;
    for (auto const& kept : fleet.blocks)
        if (kept.block.host == host) blocks.push_back(&kept.block);
    std::ranges::sort(blocks, {}, [](Block const* block) { return block->first; });
    auto const own = [&](Identity const& identity) {
        return std::ranges::any_of(blocks,
                                   [&](auto const* block) { return block->contains(identity); });
    };
    std::set<Identity> claims;
    std::set<Identity> given_up;
    for (auto const& [claim, revision] : fleet.claims) {
        bool const has = claim.state == ClaimState::held && claim.host == host;
        if (has) claims.insert(claim.identity);
        if (!has && own(claim.identity)) given_up.insert(claim.identity);
    }
    auto document = merged(blocks);
    document.claims = sorted_by_kind(claims);
    document.given_up = sorted_by_kind(given_up);
    document.generation = fleet.revision;
    return document;
}

bool may_use(Identities const& document, Identity const& identity) {
    if (listed(document.claims).contains(identity)) return true;
    return in_ranges(document, identity) && !listed(document.given_up).contains(identity);
}

IdentityDifference difference(Identities const& desired, Identities const& reported,
                              std::uint64_t pushed) {
    IdentityDifference result{Generation::current, sentences_of(desired, reported)};
    auto const has = reported.generation.value_or(0);
    if (has > *desired.generation)
        result.generation = Generation::ahead;
    else if (has < pushed)
        result.generation = Generation::altered;
    else if (!reported.generation)
        result.generation = Generation::behind;
    else if (!result.sentences.empty())
        result.generation = has == *desired.generation ? Generation::altered : Generation::behind;
    return result;
}

}  // namespace vfmgr::fleet
