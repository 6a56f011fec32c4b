// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/plan_desired.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/types/json.hpp"
#include "api/types/text.hpp"
#include "vfmgr/plan/fleet_identities.hpp"
#include "vfmgr/plan/pf_standing.hpp"

namespace vfmgr {
namespace {

using nlohmann::json;

// What is wanted of everything: what the document does not name stays, or goes.
DesiredDocument wanted_of(DesiredDocument const& now, DesiredDocument document, Unnamed unnamed) {
    for (auto& [name, network] : document.networks) network.name.clear();
    for (auto& [name, pool] : document.pools) pool.name.clear();
    // What a fleet has given is the fleet's, and no document's.
    bool const of_fleet = now.identities && now.identities->generation;
    if (!document.identities && of_fleet) document.identities = now.identities;
    if (unnamed == Unnamed::remove) {
        if (!document.identities) document.identities.emplace();
        return document;
    }
    document.pfs.insert(now.pfs.begin(), now.pfs.end());
    document.networks.insert(now.networks.begin(), now.networks.end());
    document.pools.insert(now.pools.begin(), now.pools.end());
    document.rdma_links.insert(now.rdma_links.begin(), now.rdma_links.end());
    if (!document.identities) document.identities = now.identities;
    return document;
}

constexpr std::pair<std::string_view, std::string_view> kinds[] = {
    {"pfs", "PF"}, {"networks", "network"}, {"pools", "pool"}, {"rdma_links", "RDMA link"}};

// "network train", "network train: pfs/0/host_address"; identities have no name of their own.
std::string what_changes(json::json_pointer pointer) {
    std::vector<std::string> words;
    for (; !pointer.empty(); pointer.pop_back()) words.insert(words.begin(), pointer.back());
    auto text = words.at(0);
    std::size_t used = 1;
    for (auto const& [member, kind] : kinds)
        if (words.at(0) == member && words.size() > 1) {
            text = fmt::format("{} {}", kind, words[1]);
            used = 2;
        }
    if (words.size() == used) return text;
    return fmt::format("{}: {}", text,
                       fmt::join(words.begin() + static_cast<long>(used), words.end(), "/"));
}

std::string sentence_of(json::json_pointer const& pointer, json const& now, json const& then) {
    auto const what = what_changes(pointer);
    auto const text = [](json const& value) {
        return value.is_string() ? value.get<std::string>() : value.dump();
    };
    if (then.is_null()) return fmt::format("{} is removed (now {})", what, text(now));
    if (now.is_null()) return fmt::format("{} is new: {}", what, text(then));
    return fmt::format("{} becomes {} (now {})", what, text(then), text(now));
}

// Compares member by member; the elements of a list have no names, so lists are compared whole.
void add_changes(std::vector<DesiredChange>& changes, json const& now, json const& then,
                 json::json_pointer const& at) {
    if (now == then) return;
    bool const opens = now.is_object() && then.is_object();
    if (!opens) {
        changes.push_back({at.to_string(), now.dump(), then.dump(), sentence_of(at, now, then)});
        return;
    }
    auto const member = [](json const& object, std::string const& key) {
        auto const found = object.find(key);
        return found == object.end() ? json() : *found;
    };
    for (auto const& [key, value] : now.items())
        add_changes(changes, value, member(then, key), at / key);
    for (auto const& [key, value] : then.items())
        if (!now.contains(key)) add_changes(changes, json(), value, at / key);
}

void append(Plan& plan, Plan more) {
    auto const add = [](auto& to, auto& from) {
        to.insert(to.end(), std::make_move_iterator(from.begin()),
                  std::make_move_iterator(from.end()));
    };
    add(plan.steps, more.steps);
    add(plan.blast_radius, more.blast_radius);
    add(plan.notes, more.notes);
}

// Takes `after` from what is desired to what is wanted, and judges each part as a request for it
// alone is judged. What goes is taken out first, so that what comes may have its place.
struct Planning {
    HostView const& host;
    TrustedNetdevs const& trusted;
    DesiredDocument const& document;
    DesiredDocument const& wanted;  // of everything
    DesiredPlan planned;

    DesiredState& after() { return planned.after; }

    template <class Value, class Wanted>
    [[nodiscard]] std::vector<std::string> gone(std::map<std::string, Value> const& all,
                                                Wanted const& wanted_ones) const {
        std::vector<std::string> names;
        for (auto const& [name, value] : all)
            if (!wanted_ones.contains(name)) names.push_back(name);
        return names;
    }

    Result<void> remove() {
        for (auto const& name : gone(after().pools, wanted.pools)) {
            VFMGR_CHECK(plan_pool_removal(after(), name));
            after().pools.erase(name);
        }
        // A network may go that a pool has as its default until now: pools come back below.
        for (auto const& [name, pool] : wanted.pools)
            if (auto const now = after().pools.find(name); now != after().pools.end())
                now->second.pool.defaults.network = pool.defaults.network;
        for (auto const& name : gone(after().networks, wanted.networks)) {
            VFMGR_CHECK(plan_network_removal(after(), name));
            after().networks.erase(name);
        }
        for (auto const& name : gone(after().rdma_links, wanted.rdma_links)) {
            VFMGR_TRY(Plan plan, plan_rdma_link_removal(host, after(), {name}));
            append(planned.plan, std::move(plan));
            after().rdma_links.erase(name);
        }
        auto const pfs = after().pfs;
        for (auto const& [pci, pf] : pfs) {
            if (wanted.pfs.contains(to_string(pci))) continue;
            VFMGR_CHECK(check_unused(after(), pci));
            after().pfs.erase(pci);
        }
        return {};
    }

    // A PF that the document names as it is desired may have drifted; one that is absent, or
    // another device at its address, can't be compared and changes nothing.
    Result<void> put_pf(std::string const& text, PfSpec const& spec) {
        VFMGR_TRY(auto const pci, PciAddress::parse(text));
        auto const now = after().pfs.find(pci);
        bool const same = now != after().pfs.end() && now->second.spec == spec;
        auto plan = plan_pf(host, after(), pci, spec);
        if (!plan && !same) return fail(plan.error());
        if (plan)
            append(planned.plan, std::move(*plan));
        else
            planned.plan.notes.push_back(
                fmt::format("{} is as desired, and not compared: {}", text, plan.error().detail));
        after().pfs[pci].spec = spec;
        return {};
    }

    Result<void> put() {
        auto const identities = wanted.identities.value_or(Identities{});
        VFMGR_CHECK(check_identities(after(), identities));
        after().handed_out.identities = identities;
        for (auto const& [pci, spec] : document.pfs) VFMGR_CHECK(put_pf(pci, spec));
        for (auto const& [name, value] : wanted.networks) {
            auto network = value;
            network.name = name;
            if (auto const* const now = find_network(after().networks, name);
                now && *now == network)
                continue;
            VFMGR_CHECK(plan_network(host, after(), network));
            after().networks[name].network = std::move(network);
        }
        for (auto const& [name, value] : wanted.pools) {
            auto pool = value;
            pool.name = name;
            VFMGR_CHECK(plan_pool(after(), pool));
            after().pools[name].pool = std::move(pool);
        }
        for (auto const& [name, spec] : wanted.rdma_links) {
            SoftRdmaLink const link{name, spec.type, spec.ifname};
            auto const now = after().rdma_links.find(name);
            if (now != after().rdma_links.end() && now->second.link == link) continue;
            VFMGR_TRY(Plan plan, plan_rdma_link(host, after(), trusted, link));
            append(planned.plan, std::move(plan));
            after().rdma_links[name].link = link;
        }
        return {};
    }
};

}  // namespace

DesiredDocument document_of(DesiredState const& desired) {
    DesiredDocument document;
    for (auto const& [pci, pf] : desired.pfs) document.pfs[to_string(pci)] = pf.spec;
    for (auto const& [name, each] : desired.networks) {
        document.networks[name] = each.network;
        document.networks[name].name.clear();
    }
    for (auto const& [name, each] : desired.pools) {
        document.pools[name] = each.pool;
        document.pools[name].name.clear();
    }
    for (auto const& [name, each] : desired.rdma_links)
        document.rdma_links[name] = {each.link.type, each.link.ifname};
    document.identities = desired.handed_out.identities;
    return document;
}

std::uint64_t revision_of(DesiredDocument const& document) {
    return stable_hash(json(document).dump());
}

Result<DesiredPlan> plan_desired(HostView const& host, DesiredState const& desired,
                                 TrustedNetdevs const& trusted, DesiredDocument const& document,
                                 Unnamed unnamed) {
    auto const now = document_of(desired);
    auto const wanted = wanted_of(now, document, unnamed);
    Planning planning{host, trusted, document, wanted, {{}, {}, desired}};
    add_changes(planning.planned.changes, json(now), json(wanted), json::json_pointer());
    VFMGR_CHECK(planning.remove());
    VFMGR_CHECK(planning.put());
    return std::move(planning.planned);
}

}  // namespace vfmgr
