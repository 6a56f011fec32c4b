// SPDX-License-Identifier: Apache-2.0
// The differences between what hosts have and what they are to have, and the waves.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>

#include "api/types/json.hpp"
#include "service/fleet/rollout/rollout.hpp"

namespace vfmgr::fleet {
namespace {

constexpr std::uint32_t first_wave = 1;
constexpr std::uint32_t second_wave_percent = 10;

std::string network_path(std::string const& name) {
    return "/v1/networks/" + name;
}
std::string pool_path(std::string const& name) {
    return "/v1/pools/" + name;
}

template <class T>
std::string body_of(T const& value) {
    return to_json_text(nlohmann::json(value));
}

template <class T>
T const* named_in(std::vector<T> const& all, std::string const& name) {
    auto const found = std::ranges::find(all, name, &T::name);
    return found == all.end() ? nullptr : &*found;
}

Network network_for(FleetNetwork const& desired, std::string const& host,
                    std::vector<NetworkPf> const& has) {
    auto network = desired.network;
    auto const given = desired.pfs.find(host);
    network.pfs = has;
    if (given == desired.pfs.end()) return network;
    network.pfs.clear();
    for (auto const& [pf, address] : given->second) network.pfs.push_back({pf, address});
    return network;
}

// Keeps each body once: pools, and what was where, are alike on many hosts.
class Bodies {
  public:
    explicit Bodies(std::vector<std::string>& all) : all_(all) {}
    std::uint32_t number_of(std::string body) {
        auto const next = static_cast<std::uint32_t>(all_.size());
        auto const [at, added] = numbers_.try_emplace(body, next);
        if (added) all_.push_back(std::move(body));
        return at->second;
    }

  private:
    std::vector<std::string>& all_;
    std::unordered_map<std::string, std::uint32_t> numbers_;
};

// Networks before the pools that name them as their default; what goes, the other way round.
std::vector<RolloutChange> changes_of(RolloutSpec const& spec, HostHas const& host,
                                      Bodies& bodies) {
    std::vector<RolloutChange> changes;
    auto const add = [&](std::string path, auto const* has) {
        RolloutChange change{std::move(path), {}};
        if (has) change.was = bodies.number_of(body_of(*has));
        changes.push_back(std::move(change));
    };
    for (auto const& desired : spec.networks) {
        if (!selects(desired.select, host)) continue;
        auto const* const has = named_in(host.networks, desired.network.name);
        auto const pfs = has ? has->pfs : std::vector<NetworkPf>();
        if (!has || network_for(desired, host.host, pfs) != *has)
            add(network_path(desired.network.name), has);
    }
    for (auto const& desired : spec.pools) {
        auto const* const has = named_in(host.pools, desired.pool.name);
        if (selects(desired.select, host) && (!has || desired.pool != *has))
            add(pool_path(desired.pool.name), has);
    }
    for (auto const& gone : spec.absent_pools)
        if (auto const* const has = named_in(host.pools, gone.name);
            has && selects(gone.select, host))
            add(pool_path(gone.name), has);
    for (auto const& gone : spec.absent_networks)
        if (auto const* const has = named_in(host.networks, gone.name);
            has && selects(gone.select, host))
            add(network_path(gone.name), has);
    return changes;
}

Result<void> check_names(RolloutSpec const& spec, std::vector<HostHas> const& hosts) {
    std::set<std::string_view> known;
    for (auto const& host : hosts) known.insert(host.host);
    auto const check = [&](std::string const& name) -> Result<void> {
        if (known.contains(name)) return {};
        return fail(Problem::not_found, fmt::format("there is no host {} in this fleet", name),
                    "vfctl fleet hosts shows those of this fleet");
    };
    auto const check_all = [&](auto const& all) -> Result<void> {
        for (auto const& one : all)
            for (auto const& name : one.select.names) VFMGR_CHECK(check(name));
        return {};
    };
    VFMGR_CHECK(check_all(spec.networks));
    VFMGR_CHECK(check_all(spec.pools));
    VFMGR_CHECK(check_all(spec.absent_networks));
    VFMGR_CHECK(check_all(spec.absent_pools));
    for (auto const& network : spec.networks)
        for (auto const& [name, pfs] : network.pfs) VFMGR_CHECK(check(name));
    return {};
}

// The first of each rack, then the second of each, so that a wave takes no whole rack.
std::vector<HostHas const*> over_racks(std::vector<HostHas> const& hosts) {
    std::vector<HostHas const*> sorted;
    for (auto const& host : hosts) sorted.push_back(&host);
    std::ranges::sort(sorted, {}, &HostHas::host);
    std::map<std::string_view, std::size_t> in_rack;
    std::vector<std::tuple<std::size_t, std::string_view, std::size_t>> turns;
    for (std::size_t i = 0; i < sorted.size(); ++i)
        turns.emplace_back(in_rack[sorted[i]->rack]++, sorted[i]->rack, i);
    std::ranges::sort(turns);
    std::vector<HostHas const*> all;
    for (auto const& [turn, rack, place] : turns) all.push_back(sorted[place]);
    return all;
}

std::uint32_t hosts_in(WaveSize const& size, std::size_t changing) {
    auto const count = size.percent ? changing * size.number / 100 : size.number;
    return static_cast<std::uint32_t>(std::max<std::size_t>(count, 1));
}

void set_waves(Rollout& rollout) {
    auto const changing = static_cast<std::size_t>(
        std::ranges::count(rollout.hosts, RolloutHostState::planning, &RolloutHost::state));
    auto sizes = rollout.spec.waves;
    if (sizes.empty()) sizes = {{first_wave, false}, {second_wave_percent, true}};
    std::size_t wave = 0;
    std::uint32_t in_wave = 0;
    for (auto& host : rollout.hosts) {
        if (host.state != RolloutHostState::planning) continue;
        if (wave < sizes.size() && in_wave == hosts_in(sizes[wave], changing)) {
            ++wave;
            in_wave = 0;
        }
        host.wave = static_cast<std::uint32_t>(wave);
        ++in_wave;
    }
    rollout.waves = changing == 0 ? 0 : static_cast<std::uint32_t>(wave + 1);
}

HostCall put_or_delete(std::string const& host, std::string const& path,
                       std::optional<std::string> body) {
    if (body) return {host, "PUT", path, std::move(*body)};
    return {host, "DELETE", path};
}

// Absent: it is to go.
std::optional<std::string> desired_body(Rollout const& rollout, std::string const& host,
                                        RolloutChange const& change) {
    for (auto const& desired : rollout.spec.networks) {
        if (network_path(desired.network.name) != change.path) continue;
        std::vector<NetworkPf> has;
        if (change.was)
            if (auto const before = from_json_text<Network>(rollout.bodies.at(*change.was)))
                has = before->pfs;
        return body_of(network_for(desired, host, has));
    }
    for (auto const& desired : rollout.spec.pools)
        if (pool_path(desired.pool.name) == change.path) return body_of(desired.pool);
    return std::nullopt;
}

}  // namespace

bool selects(HostSelector const& select, HostHas const& host) {
    auto const listed = [](auto const& all, std::string const& one) {
        return all.empty() || std::ranges::find(all, one) != all.end();
    };
    if (!listed(select.names, host.host) || !listed(select.racks, host.rack)) return false;
    return std::ranges::all_of(select.labels, [&](auto const& label) {
        auto const has = host.labels.find(label.first);
        return has != host.labels.end() && has->second == label.second;
    });
}

Result<Rollout> planned_rollout(RolloutOrder order, std::vector<HostHas> const& hosts) {
    VFMGR_CHECK(check_names(order.spec, hosts));
    Rollout rollout;
    rollout.id = std::move(order.id);
    rollout.spec = std::move(order.spec);
    rollout.requested_by = std::move(order.requested_by);
    rollout.started_at = order.started_at;
    Bodies bodies(rollout.bodies);
    bool any = false;
    for (auto const* const has : over_racks(hosts)) {
        RolloutHost host{has->host, 0, {}, changes_of(rollout.spec, *has, bodies), 0, 0, {}, {}};
        if (host.changes.empty()) host.state = RolloutHostState::unchanged;
        any = any || !host.changes.empty();
        rollout.hosts.push_back(std::move(host));
    }
    set_waves(rollout);
    if (!any) rollout.state = RolloutState::done;
    auto const size = to_json_text(nlohmann::json(rollout)).size();
    if (size > rollout_bytes_max)
        return fail(Problem::limit_exceeded,
                    fmt::format("the rollout to {} hosts takes {} bytes, of {} that etcd can keep",
                                hosts.size(), size, rollout_bytes_max),
                    "roll out to some racks after the others: select them by racks");
    return rollout;
}

bool can_be_tried(Rollout const& rollout, RolloutHost const& host, std::size_t change) {
    auto const& path = host.changes.at(change).path;
    auto const earlier = std::span(host.changes).first(change);
    auto const changed = [&](std::string const& other) {
        return std::ranges::find(earlier, other, &RolloutChange::path) != earlier.end();
    };
    for (auto const& desired : rollout.spec.pools)
        if (pool_path(desired.pool.name) == path)
            return !desired.pool.defaults.network ||
                   !changed(network_path(*desired.pool.defaults.network));
    for (auto const& gone : rollout.spec.absent_networks)
        if (network_path(gone.name) == path)
            return std::ranges::none_of(rollout.spec.absent_pools, [&](FleetAbsent const& pool) {
                return changed(pool_path(pool.name));
            });
    return true;
}

std::vector<HostCall> calls_of(Rollout const& rollout, RolloutHost const& host) {
    std::vector<HostCall> calls;
    for (auto const& change : host.changes)
        calls.push_back(
            put_or_delete(host.host, change.path, desired_body(rollout, host.host, change)));
    return calls;
}

std::vector<HostCall> undo_calls_of(Rollout const& rollout, RolloutHost const& host) {
    std::vector<HostCall> calls;
    for (auto i = std::min<std::size_t>(host.applied, host.changes.size()); i > 0; --i) {
        auto const& change = host.changes[i - 1];
        std::optional<std::string> was;
        if (change.was) was = rollout.bodies.at(*change.was);
        calls.push_back(put_or_delete(host.host, change.path, std::move(was)));
    }
    return calls;
}

}  // namespace vfmgr::fleet
